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

TEST(Control, AGreetingSaysWhatIsAtHandAndWhatIsKnownOfTheText) {
  Control greeting{ControlKind::kGreeting};
  greeting.view.epoch = 7;
  greeting.fingerprint = 3;
  greeting.heard = uint64_t{1} << 40;
  greeting.pieces = {{4, 6}, {9, 10}};
  greeting.standing = {3, 50, 5, {{7, 9}}, {{1, {20, 2, 0, 0}}, {2, {30, 3, 0, 0}}}};
  const Result<Control> told = decode_control(encode(greeting));
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_EQ(told->view.epoch, 7);
  EXPECT_EQ(told->fingerprint, 3);
  EXPECT_EQ(told->heard, greeting.heard);
  EXPECT_EQ(told->pieces, greeting.pieces);
  EXPECT_EQ(told->standing.finished, greeting.standing.finished);
  EXPECT_EQ(told->standing.trained.at(2).tokens, 30);
  EXPECT_EQ(told->standing.trained.at(1).pairs, 2);
  greeting.standing.finished = {{9, 7}};
  EXPECT_FALSE(decode_control(encode(greeting)).ok());
}

TEST(Control, SaysWhichOwnersAreSlowAndWhoOwnsRowsNoMore) {
  Control alive;
  alive.view.epoch = 3;
  alive.slow = {{4, 0.0625, 0.0025}};
  Result<Control> told = decode_control(encode(alive));
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_EQ(told->view.epoch, 3);
  ASSERT_EQ(told->slow.size(), 1);
  EXPECT_EQ(told->slow[0].node, 4);
  EXPECT_EQ(told->slow[0].took_s, 0.0625);
  EXPECT_EQ(told->slow[0].others_s, 0.0025);
  Control view{ControlKind::kView};
  view.view = {4, {1, 2, 3, 4}, {1, 2, 3}, {4}};
  told = decode_control(encode(view));
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_EQ(told->view.servers, view.view.servers);
  EXPECT_EQ(told->view.retired, view.view.retired);
}

}  // namespace
}  // namespace streamvec
