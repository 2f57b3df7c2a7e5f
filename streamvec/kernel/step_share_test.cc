#include "streamvec/kernel/step_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace streamvec {
namespace {

TEST(StepShare, IsLessWhereAWordIsNamedOften) {
  const std::vector<int32_t> plain = {1, 2, 3, 1, 2, 3,  1,
                                      2, 3, 1, 2, 3, 65, 129};  // some in one place of the first look
  EXPECT_EQ(step_share_of(plain, plain), 1);
  const std::vector<int32_t> positives(10, 7);
  std::vector<int32_t> outputs = positives;
  outputs.insert(outputs.end(), {8, 7, 7, 9});
  EXPECT_FLOAT_EQ(step_share_of(positives, outputs), 4.0f / 12);
}

}  // namespace
}  // namespace streamvec
