#include "streamvec/cluster/control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace streamvec {
namespace {

TEST(Control, ALossThatHasDivergedIsToldAsNoNumber) {
  for (const double loss : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Control finished{ControlKind::kFinished};
    finished.trained = {7, 5, loss, 5};
    const Result<Control> told = decode_control(encode(finished));
    ASSERT_TRUE(told.ok()) << told.status().message();
    EXPECT_TRUE(std::isnan(told->trained.loss));
    EXPECT_EQ(told->trained.pairs, 5);
  }
}

}  // namespace
}  // namespace streamvec
