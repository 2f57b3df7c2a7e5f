#include "streamvec/model/rbsg_vectors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/model/rbsg.h"

namespace streamvec {
namespace {

std::unique_ptr<Rbsg> small_model(RecurrentCell cell = RecurrentCell::kLstm) {
  auto made =
      std::move(Rbsg::make({.dim = 11, .hidden = 16, .character_dim = 6, .cell = cell, .fold_case = true})).value();
  made->set_word(0, "naïve");
  made->set_word(1, "한국어");
  return made;
}

EncoderParameters centre_of(Rbsg& rbsg) {
  EncoderParameters encoder;
  auto copies = std::move(rbsg.copy_states()).value();
  for (Rbsg::Copy& copy : copies)
    for (const EncoderParameters::Named& each : encoder.all())
      if (copy.name == kRbsgCentre + std::string(each.name)) *each.values = std::move(copy.values);
  return encoder;
}

TEST(RbsgIndex, ComesBackAsItWas) {
  const RbsgIndex index = small_model(RecurrentCell::kGru)->index();
  const auto back = RbsgIndex::decode(index.encode(), "rbsg.bin");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->admitted, index.admitted);
  EXPECT_EQ(back->shape.characters, index.shape.characters);
  EXPECT_EQ(back->shape.hidden, 16);
  EXPECT_EQ(back->shape.character_dim, 6);
  EXPECT_EQ(back->shape.dim, 11);
  EXPECT_EQ(back->shape.cell, RecurrentCell::kGru);
  EXPECT_TRUE(back->fold_case);
}

TEST(RbsgIndex, DamageIsNamedWithFileAndOffset) {
  const std::string good = small_model()->index().encode();
  const auto expect_damage = [](const std::string& bytes) {
    const auto read = RbsgIndex::decode(bytes, "rbsg.bin");
    ASSERT_EQ(read.status().code(), Code::kDataLoss);
    EXPECT_NE(read.status().message().find("rbsg.bin: byte "), std::string::npos);
  };
  for (size_t size = 0; size < good.size(); size += 5) expect_damage(good.substr(0, size));
  expect_damage(good + "x");
  for (const size_t at : {0, 8, 12, 19, 20, 27, 31, 35, 36, 40, 44, 50}) {
    std::string bad = good;
    bad[at] = '\x7f';
    expect_damage(bad);
  }
}

TEST(RbsgVectors, AnyStringHasTheVectorThatTheModelGivesIt) {
  for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
    auto rbsg = small_model(cell);
    const auto vectors = std::move(RbsgVectors::make(rbsg->index(), centre_of(*rbsg))).value();
    for (const std::string_view word : {"naïve", "never", "한국", "\xff\xfe", "🦜"}) {
      Matrix wanted = std::move(Matrix::make(1, 11)).value();
      ASSERT_TRUE(rbsg->embed(std::span(&word, 1), Rbsg::kCentre, 1, wanted.view()).ok());
      std::vector<float> got(11);
      ASSERT_TRUE(vectors->generate(word, got).ok());
      EXPECT_EQ(got, std::vector<float>(wanted.row(0), wanted.row(0) + 11)) << word;
    }
  }
}

TEST(RbsgVectors, TheEmptyStringIsAnError) {
  auto rbsg = small_model();
  const auto vectors = std::move(RbsgVectors::make(rbsg->index(), centre_of(*rbsg))).value();
  std::vector<float> out(11);
  EXPECT_EQ(vectors->generate("", out).code(), Code::kInvalidArgument);
}

TEST(RbsgVectors, TablesOfAnotherShapeAreRefused) {
  auto rbsg = small_model();
  RbsgIndex index = rbsg->index();
  index.shape.hidden = 32;
  EXPECT_EQ(RbsgVectors::make(index, centre_of(*rbsg)).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace streamvec
