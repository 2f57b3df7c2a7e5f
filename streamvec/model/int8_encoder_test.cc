#include "streamvec/model/int8_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "streamvec/model/trie_lstm_testing.h"

namespace streamvec {
namespace {

// Words in alphabetical order that share beginnings: one empty, one there twice, one the beginning of others, one long.
std::vector<Spelling> sorted_words(uint32_t count, uint32_t letters) {
  std::vector<Spelling> words{{}, {3, 3}, {3, 3}, {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}};
  Random random(5);
  for (uint32_t i = 0; i < count; ++i) {
    Spelling word;
    for (uint32_t length = 1 + random.below(9); length > 0; --length)
      word.push_back(static_cast<CharacterId>(random.below(letters)));
    words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  return words;
}

struct Encoded {
  Encoded(std::vector<Spelling> spellings, EncoderShape shape)
      : words(std::move(spellings)), encoder(std::move(EncoderParameters::make(shape)).value()) {
    encoder.draw(3);
    const std::vector<std::span<const CharacterId>> views(words.begin(), words.end());
    trie.build(views);
    got = std::move(Matrix::make(trie.words(), shape.dim)).value();
    const Int8EncoderWeights weights(encoder);
    Int8Encoder int8(weights);
    for (int i = 0; i < 2; ++i) int8.forward(trie, got.view());  // nothing is left of the first time
  }
  std::vector<Spelling> words;
  EncoderParameters encoder;
  CharTrie trie;
  Matrix got;
};

bool can_run() {
  return Int8EncoderWeights::can_hold(std::move(EncoderParameters::make({.hidden = 16})).value());
}

TEST(Int8Encoder, VectorsAreNearThoseOfAWordByWordReference) {
  if (!can_run()) GTEST_SKIP() << "needs AMX with whole numbers of 8 bits";
  for (const int32_t hidden : {16, 64, 96}) {
    Encoded encoded(sorted_words(60, 5),
                    {.characters = 9, .characters_max = 9, .character_dim = 7, .hidden = hidden, .dim = 10});
    const testing::PlainEncoder plain(encoded.encoder);
    for (size_t w = 0; w < encoded.words.size(); ++w) {
      const testing::Values wanted = testing::plain_vector(plain, encoded.words[w]);
      for (size_t d = 0; d < wanted.size(); ++d)
        ASSERT_NEAR(encoded.got.row(static_cast<int64_t>(w))[d], wanted[d], 0.02) << hidden << " " << w << " " << d;
    }
  }
}

// What all words have in common is taken away first: it says nothing of any.
TEST(Int8Encoder, AtFullSizeVectorsHaveACosineAbove9999WithThoseInF32) {
  if (!can_run()) GTEST_SKIP() << "needs AMX with whole numbers of 8 bits";
  Encoded encoded(sorted_words(200, 26), {.characters = 40, .characters_max = 40});
  Matrix wanted = std::move(encoded.got.copy()).value(), got = std::move(encoded.got.copy()).value();
  TrieLstm().forward(encoded.encoder, encoded.trie, wanted.view());
  const int64_t rows = got.rows(), cols = got.cols();
  for (Matrix* matrix : {&wanted, &got})
    for (int64_t d = 0; d < cols; ++d) {
      double mean = 0;
      for (int64_t i = 0; i < rows; ++i) mean += matrix->row(i)[d] / static_cast<double>(rows);
      for (int64_t i = 0; i < rows; ++i) matrix->row(i)[d] -= static_cast<float>(mean);
    }
  double least = 1;
  for (int64_t i = 0; i < rows; ++i) {
    double both = 0, squares[2] = {0, 0};
    for (int64_t d = 0; d < cols; ++d) {
      both += wanted.row(i)[d] * got.row(i)[d];
      squares[0] += wanted.row(i)[d] * wanted.row(i)[d];
      squares[1] += got.row(i)[d] * got.row(i)[d];
    }
    least = std::min(least, both / std::sqrt(squares[0] * squares[1]));
  }
  EXPECT_GT(least, 0.9999);
  EXPECT_LT(least, 0.9999999) << "8 bits were not used";
}

}  // namespace
}  // namespace streamvec
