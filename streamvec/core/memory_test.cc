#include "streamvec/core/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace streamvec {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(Memory, SomeIsFreeAndNoMoreThanAMachineHas) {
  EXPECT_GT(available_memory(), 1 << 20);
  EXPECT_LT(available_memory(), int64_t{1} << 50);
}

TEST(Memory, WhatIsThereIsGivenAsZeros) {
  const auto values = make_values<uint32_t>(100'000, "some numbers", "fewer");
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->size(), 100'000u);
  EXPECT_THAT(*values, Each(0u));
}

TEST(Memory, WhatIsNotThereIsAnErrorThatSaysWhatAndHowMuchAndWhatToTry) {
  const Status status = make_values<uint32_t>(int64_t{1} << 50, "an index", "a smaller --bucket").status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no memory for an index: 4294967296 MB are needed, "),
                                      ContainsRegex("[0-9]+ MB are free"), HasSubstr("try a smaller --bucket")));
}

TEST(Memory, SizesPastAllNumbersAreAnErrorToo) {
  EXPECT_EQ(check_memory("x", 1e300, "less").code(), Code::kResourceExhausted);
  EXPECT_EQ(make_values<uint64_t>(std::numeric_limits<int64_t>::max(), "x", "less").status().code(),
            Code::kResourceExhausted);
}

TEST(Memory, ALimitOfTheProcessCounts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take terabytes of addresses";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{64 << 20, 64 << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    ::_exit(available_memory() <= 64 << 20 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace streamvec
