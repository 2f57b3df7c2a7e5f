#include "streamvec/model/trie_lstm.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <string>
#include <vector>

#include "streamvec/model/trie_lstm_testing.h"

namespace streamvec {
namespace {

using testing::PlainEncoder;
using testing::Values;

// Words of small numbers that share many beginnings: one is the beginning of another, one is there twice, one has a
// single character, one is empty, one is long.
std::vector<Spelling> sharing_words() {
  std::vector<Spelling> words{{0, 3, 4, 5, 1},
                              {0, 3, 4, 1},
                              {0, 3, 4, 5, 5, 1},
                              {0, 3, 4, 5, 1},
                              {0, 3, 4},
                              {0, 4, 3, 1},
                              {7},
                              {},
                              {0, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 1}};
  Random random(5);
  for (int i = 0; i < 30; ++i) {
    Spelling word{0};
    for (uint32_t length = 1 + random.below(5); length > 0; --length)
      word.push_back(static_cast<CharacterId>(2 + random.below(4)));
    words.push_back(word);
  }
  return words;
}

// An encoder with sizes that are all different, words, and what each way makes of them.
class Case {
 public:
  explicit Case(std::vector<Spelling> spellings, int32_t hidden = 32, int32_t dim = 10,
                RecurrentCell cell = RecurrentCell::kLstm)
      : words(std::move(spellings)),
        shape{.characters = 9, .characters_max = 9, .character_dim = 7, .hidden = hidden, .dim = dim, .cell = cell},
        encoder(std::move(EncoderParameters::make(shape)).value()),
        slopes(std::move(EncoderParameters::make(shape)).value()) {
    encoder.draw(3);
    std::vector<std::span<const CharacterId>> views(words.begin(), words.end());
    trie.build(views);
    out.resize(words.size() * static_cast<size_t>(kStride), 77.0f);
    Random random(9);
    for (size_t i = 0; i < out.size(); ++i) out_slopes.push_back(random.uniform() * 2 - 1);
  }
  MatrixView<float> view(std::vector<float>& values) {
    return {values.data(), static_cast<int64_t>(words.size()), shape.dim, kStride};
  }
  Values slope_of(size_t word) const {
    const auto begin = out_slopes.begin() + static_cast<ptrdiff_t>(word * kStride);
    return {begin, begin + shape.dim};
  }
  // Sum over words of slope . vector, whose slopes the way back computes.
  double height(const PlainEncoder& plain) const {
    double sum = 0;
    for (size_t w = 0; w < words.size(); ++w) {
      const Values vector = testing::plain_vector(plain, words[w]), slope = slope_of(w);
      for (size_t d = 0; d < vector.size(); ++d) sum += vector[d] * slope[d];
    }
    return sum;
  }
  PlainEncoder plain_slopes() {
    const PlainEncoder plain(encoder);
    PlainEncoder sums = plain.zeros();
    for (size_t w = 0; w < words.size(); ++w) testing::plain_backward(plain, words[w], slope_of(w), sums);
    return sums;
  }
  void expect_vectors(double error_max = 1e-5) {
    const PlainEncoder plain(encoder);
    for (size_t w = 0; w < words.size(); ++w) {
      const Values wanted = testing::plain_vector(plain, words[w]);
      for (size_t d = 0; d < wanted.size(); ++d)
        EXPECT_NEAR(out[w * kStride + d], wanted[d], error_max) << w << " " << d;
      EXPECT_EQ(out[w * kStride + wanted.size()], 77.0f) << "behind a row";
    }
  }
  void expect_slopes(double times, double error_max = 2e-5) {
    const PlainEncoder wanted = plain_slopes(), got(slopes);
    for (size_t part = 0; part < wanted.tables.size(); ++part) {
      double square = 0, error = 0;
      for (size_t i = 0; i < wanted.tables[part].values.size(); ++i) {
        const double value = times * wanted.tables[part].values[i];
        square += value * value;
        error += (got.tables[part].values[i] - value) * (got.tables[part].values[i] - value);
      }
      EXPECT_GT(square, 0) << encoder.all()[part].name;
      EXPECT_LT(std::sqrt(error / square), error_max) << encoder.all()[part].name;
    }
  }

  static constexpr int64_t kStride = 13;
  std::vector<Spelling> words;
  EncoderShape shape;
  EncoderParameters encoder, slopes;
  CharTrie trie;
  std::vector<float> out, out_slopes;
};

TEST(TrieLstm, VectorsAreThoseOfAWordByWordReference) {
  Case all(sharing_words());
  TrieLstm lstm;
  lstm.forward(all.encoder, all.trie, all.view(all.out));
  all.expect_vectors();
}

// Levels go by 32 units at a time, where these divide the hidden size.
TEST(TrieLstm, VectorsAreThoseOfTheReferenceForEveryHiddenSize) {
  for (const int32_t hidden : {16, 48, 64, 96}) {
    SCOPED_TRACE(hidden);
    Case all(sharing_words(), hidden);
    TrieLstm lstm;
    lstm.forward(all.encoder, all.trie, all.view(all.out));
    all.expect_vectors();
    lstm.backward(all.encoder, all.trie, all.view(all.out_slopes), all.slopes);
    all.expect_slopes(1);
  }
}

TEST(TrieLstm, VectorsAreTheSameWhenNothingIsKeptForTheWayBack) {
  for (const char* kind : {"reference", "simd", "bf16", "amx"})
    for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru})
      for (const int32_t hidden : {16, 64}) {
        const auto products = make_packed_gemm(kind);
        if (!products.ok()) continue;
        SCOPED_TRACE(kind);
        Case all(sharing_words(), hidden, 10, cell);
        TrieLstm lstm(*products);
        lstm.forward(all.encoder, all.trie, all.view(all.out));
        const std::vector<float> kept = all.out;
        TrieLstm other(*products);
        other.forward_only(all.encoder, other.pack(all.encoder), all.trie, all.view(all.out));
        EXPECT_EQ(all.out, kept);
      }
}

TEST(TrieLstm, TheReferencesSlopesAreFiniteDifferences) {
  for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
    Case few({{0, 3, 4, 1}, {0, 3, 5, 5, 1}, {7}, {0, 3}}, 16, 5, cell);
    const PlainEncoder slopes = few.plain_slopes();
    PlainEncoder plain(few.encoder);
    for (size_t part = 0; part < plain.tables.size(); ++part)
      for (size_t i = 0; i < plain.tables[part].values.size(); i += 1 + plain.tables[part].values.size() / 60) {
        double& value = plain.tables[part].values[i];
        const double before = value, step = 1e-5;
        value = before + step;
        const double above = few.height(plain);
        value = before - step;
        const double below = few.height(plain);
        value = before;
        EXPECT_NEAR(slopes.tables[part].values[i], (above - below) / (2 * step), 1e-8) << part << " " << i;
      }
  }
}

TEST(TrieLstm, SlopesAreThoseOfTheReferenceForEveryHighwayTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
      Case all(sharing_words(), 32, 10, cell);
      TrieLstm lstm;
      lstm.forward(all.encoder, all.trie, all.view(all.out));
      all.expect_vectors();
      lstm.backward(all.encoder, all.trie, all.view(all.out_slopes), all.slopes);
      all.expect_slopes(1);
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

// bf16 keeps 8 bits: its products are a few thousandths off, and so are vectors and slopes made with them.
TEST(TrieLstm, WithBf16ProductsVectorsAndSlopesAreNearTheReferences) {
  for (const char* kind : {"bf16", "amx"}) {
    const auto products = make_packed_gemm(kind);
    if (!products.ok()) continue;
    SCOPED_TRACE(kind);
    for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
      Case all(sharing_words(), 64, 10, cell);
      TrieLstm lstm(*products);
      lstm.forward(all.encoder, all.trie, all.view(all.out));
      all.expect_vectors(0.02);
      lstm.backward(all.encoder, all.trie, all.view(all.out_slopes), all.slopes);
      all.expect_slopes(1, 0.02);
    }
  }
}

TEST(TrieLstm, SlopesAreAddedAndNothingOfTheBatchBeforeIsLeft) {
  Case first({{0, 5, 5, 5, 3, 1}, {0, 2, 1}, {0, 2, 2, 3, 4, 5, 1}}), second(sharing_words());
  TrieLstm lstm;
  for (Case* each : {&second, &first, &second, &first, &second}) {
    lstm.forward(each->encoder, each->trie, each->view(each->out));
    lstm.backward(each->encoder, each->trie, each->view(each->out_slopes), each->slopes);
  }
  first.expect_slopes(2);
  second.expect_slopes(3);
}

TEST(TrieLstm, ABatchWithoutWordsOrWithoutCharactersAddsNoSlopeBelowTheOutput) {
  for (const auto& words : {std::vector<Spelling>{}, std::vector<Spelling>{{}, {}}}) {
    Case none(words);
    TrieLstm lstm;
    lstm.forward(none.encoder, none.trie, none.view(none.out));
    none.expect_vectors();
    lstm.backward(none.encoder, none.trie, none.view(none.out_slopes), none.slopes);
    const PlainEncoder got(none.slopes);
    for (const double value : got[PlainEncoder::kRecurrent].values) EXPECT_EQ(value, 0);
  }
}

TEST(EncoderParameters, RefusesAHiddenSizeThatIsNoMultipleOf16) {
  EXPECT_EQ(EncoderParameters::make({.hidden = 100}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(EncoderParameters::make({.hidden = 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(EncoderParameters::make({.dim = 0}).status().code(), Code::kInvalidArgument);
}

TEST(EncoderParameters, ACharacterThatComesLaterIsDrawnAsIfItHadBeenThere) {
  auto early = std::move(EncoderParameters::make({.characters = 300, .hidden = 16})).value();
  auto late = std::move(EncoderParameters::make({.characters = 290, .hidden = 16})).value();
  early.draw(4);
  late.draw(4);
  late.grow(300, 4);
  for (int64_t i = 0; i < 300; ++i)
    EXPECT_TRUE(std::equal(early.characters.row(i), early.characters.row(i) + 128, late.characters.row(i))) << i;
}

}  // namespace
}  // namespace streamvec
