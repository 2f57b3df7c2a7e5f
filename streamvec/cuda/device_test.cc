#include "streamvec/cuda/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec::cuda {
namespace {

using ::testing::HasSubstr;

TEST(UseCuda, TheCpuIsAlwaysThere) {
  EXPECT_FALSE(use_cuda("cpu").value());
}

TEST(UseCuda, AutoTakesTheCardExactlyWhereOneIsFound) {
  EXPECT_EQ(use_cuda("auto").value(), find_device().ok());
}

TEST(UseCuda, SaysWhyThereIsNoCardAndWhatToTry) {
  if (find_device().ok()) GTEST_SKIP() << "there is one";
  const Status status = use_cuda("cuda").status();
  EXPECT_EQ(status.code(), find_device().status().code());
  EXPECT_THAT(status.message(), HasSubstr("--device cuda: "));
  EXPECT_THAT(status.message(), HasSubstr("--device cpu"));
}

TEST(UseCuda, RefusesDevicesNobodyKnows) {
  EXPECT_EQ(use_cuda("tpu").status().code(), Code::kInvalidArgument);
}

TEST(FindDevice, KnowsWhatTheCardHas) {
  const Result<Device> device = find_device();
  if (!device.ok()) GTEST_SKIP() << "needs a CUDA device: " << device.status().message();
  EXPECT_FALSE(device->name.empty());
  EXPECT_GT(device->multiprocessors, 0);
  EXPECT_GT(device->memory, device->free);
  EXPECT_GT(device->free, 0);
}

TEST(CheckDeviceMemory, NamesBothFiguresWhenItIsNotEnough) {
  if (!find_device().ok()) GTEST_SKIP() << "needs a CUDA device";
  EXPECT_TRUE(check_device_memory("a byte", 1, "nothing").ok());
  const Status status = check_device_memory("a planet", 0x1p60, "a moon");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("1099511627776 MB are needed"));
  EXPECT_THAT(status.message(), HasSubstr("MB are free; try a moon"));
}

}  // namespace
}  // namespace streamvec::cuda
