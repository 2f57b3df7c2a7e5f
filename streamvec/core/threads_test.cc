#include "streamvec/core/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "streamvec/core/crew.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/testing_no_threads.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

TEST(Threads, EachDoesItsPartOnAThreadOfItsOwn) {
  std::vector<std::thread::id> ids(4);
  Threads threads;
  ASSERT_TRUE(threads.start(4, [&](int64_t i) { ids[static_cast<size_t>(i)] = std::this_thread::get_id(); }).ok());
  EXPECT_EQ(threads.size(), 4);
  threads.join();
  ids.push_back(std::this_thread::get_id());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Threads, ThoseThatWereMadeAreJoinedWhenThereAreNoMore) {
  std::atomic<bool> over = false;
  std::atomic<int> ended = 0;
  const auto work = [&](int64_t) {
    while (!over) std::this_thread::yield();
    ++ended;
  };
  {
    Threads threads;
    ASSERT_TRUE(threads.start(2, work).ok());
    const NoMoreThreads none;
    const Status failed = threads.start(3, work);
    EXPECT_EQ(failed.code(), Code::kResourceExhausted);
    EXPECT_THAT(failed.message(), HasSubstr("no more threads can be made ("));
    EXPECT_THAT(failed.message(), HasSubstr("try fewer --threads"));
    EXPECT_EQ(threads.size(), 2);
    over = true;
  }
  EXPECT_EQ(ended, 2);
}

TEST(Threads, WhatCanDoWithFewerDoes) {
  const NoMoreThreads none;
  Crew crew(3);
  EXPECT_EQ(crew.helpers(), 0);
  int parts = 0;
  crew.share(5, [&](int64_t) { ++parts; });
  EXPECT_EQ(parts, 5);
  auto made = Matrix::make(1 << 15, 64);
  ASSERT_TRUE(made.ok());
  made->take_pages(4);
  EXPECT_EQ(made->row(1)[0], 0);
}

}  // namespace
}  // namespace streamvec
