#include "streamvec/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/testing.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

TEST(MakeModelWorker, AnUnknownModelIsAnInvalidArgumentThatNamesTheKnownOnes) {
  Parameters parameters = testing::random_parameters(3, 4);
  const auto worker = make_model_worker({.model = "no-such-model", .windows = {}, .kernel = "auto"}, parameters);
  ASSERT_FALSE(worker.ok());
  EXPECT_EQ(worker.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(worker.status().message(), HasSubstr("try sgns"));
}

TEST(MakeModelWorker, AnUnknownKernelIsAnInvalidArgument) {
  Parameters parameters = testing::random_parameters(3, 4);
  const auto worker = make_model_worker({.model = "sgns", .windows = {}, .kernel = "gpu"}, parameters);
  ASSERT_FALSE(worker.ok());
  EXPECT_EQ(worker.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(worker.status().message(), HasSubstr("'gpu'"));
}

TEST(MakeModelWorker, TellsWhichKernelRuns) {
  Parameters parameters = testing::random_parameters(3, 4);
  for (const char* model : {"sgns", "cbow"})
    for (const std::string& kernel : pair_kernels_available())
      EXPECT_EQ(testing::make_worker(model, kernel, {}, parameters)->kernel_name(),
                make_pair_kernel(kernel).value()->name());
}

}  // namespace
}  // namespace streamvec
