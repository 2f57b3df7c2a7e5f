#include "streamvec/model/int8_encoder.h"

#include <algorithm>
#include <utility>

#include "streamvec/kernel/lstm_cell.h"

namespace streamvec {
namespace {

constexpr int32_t kNone = -1;

MatrixView<float> in_order_of_levels(const Matrix& rows, int32_t hidden, RowBuffer& to) {
  const MatrixView<float> ordered = to.reserve(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) order_int8_lstm_input(rows.row(i), hidden, ordered.row(i));
  return ordered;
}

// Ends are twice h.
MatrixView<float> halved(const Matrix& rows, RowBuffer& to) {
  const MatrixView<float> half = to.reserve(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (int64_t j = 0; j < rows.cols(); ++j) half.row(i)[j] = rows.row(i)[j] / 2;
  return half;
}

void fill_with(const float* row, MatrixView<float> to) {
  for (int64_t i = 0; i < to.rows; ++i) std::copy_n(row, to.cols, to.row(i));
}

std::span<const int32_t> part(std::span<const int32_t> values, int32_t begin, int32_t end) {
  return values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace

bool Int8EncoderWeights::can_hold(const EncoderParameters& encoder) {
  return cpu_has_amx_int8() && encoder.gates() == kLstmGates;
}

Int8EncoderWeights::Int8EncoderWeights(const EncoderParameters& encoder)
    : encoder_(encoder), products_(std::move(make_packed_gemm("amx")).value()) {
  RowBuffer input, output;
  in_order_of_levels(encoder.bias, encoder.hidden(), bias_);
  products_->pack(in_order_of_levels(encoder.input, encoder.hidden(), input), input_);
  products_->pack(halved(encoder.output, output), output_);
  recurrent_.pack(encoder.recurrent.view());
}

void Int8Encoder::forward(const CharTrie& trie, MatrixView<float> out) {
  STREAMVEC_CHECK_EQ(out.rows, int64_t{trie.words()});
  STREAMVEC_CHECK_EQ(out.cols, weights_.output_.cols);
  fill_table(trie);
  find_words(trie);
  before_.reserve(1, weights_.recurrent_.hidden);
  before_.set_zero();
  for (int32_t word = first_[0]; word != kNone; word = next_[static_cast<size_t>(word)])
    std::copy_n(weights_.encoder_.output_bias.row(0), out.cols, out.row(word));
  for (int32_t length = 1; length < trie.levels(); ++length) {
    const int32_t inner_ends = number_ends(trie.level(length));
    step(trie, length, inner_ends);
    give_vectors(trie.level(length), inner_ends, out);
    std::swap(before_, after_);
  }
}

void Int8Encoder::fill_table(const CharTrie& trie) {
  const auto size = static_cast<int64_t>(trie.alphabet().size());
  const MatrixView<float> letters = letters_.reserve(size, weights_.encoder_.characters.cols());
  for (int64_t i = 0; i < size; ++i)
    std::copy_n(weights_.encoder_.characters.row(trie.alphabet()[static_cast<size_t>(i)]), letters.cols,
                letters.row(i));
  const MatrixView<float> table = table_.reserve(size, weights_.bias_.view().cols);
  fill_with(weights_.bias_.row(0), table);
  weights_.products_->multiply(letters, weights_.input_, true, table);
}

void Int8Encoder::find_words(const CharTrie& trie) {
  first_.assign(static_cast<size_t>(trie.nodes()), kNone);
  next_.resize(static_cast<size_t>(trie.words()));
  for (int32_t word = 0; word < trie.words(); ++word)
    next_[static_cast<size_t>(word)] =
        std::exchange(first_[static_cast<size_t>(trie.word_nodes()[static_cast<size_t>(word)])], word);
}

// Rows of ends_: those of inner nodes come first, then leaves, all of which are ends, then one that nobody reads.
int32_t Int8Encoder::number_ends(const CharTrie::Level& level) {
  end_nodes_.clear();
  inner_ends_.assign(static_cast<size_t>(level.inner_end - level.inner_begin), kNone);
  for (int32_t node = level.inner_begin; node < level.inner_end; ++node) {
    if (first_[static_cast<size_t>(node)] == kNone) continue;
    inner_ends_[static_cast<size_t>(node - level.inner_begin)] = static_cast<int32_t>(end_nodes_.size());
    end_nodes_.push_back(node);
  }
  const auto count = static_cast<int32_t>(end_nodes_.size());
  for (int32_t& row : inner_ends_)
    if (row == kNone) row = count + level.leaf_end - level.leaf_begin;
  return count;
}

void Int8Encoder::step(const CharTrie& trie, int32_t length, int32_t inner_ends) {
  const CharTrie::Level &level = trie.level(length), &before = trie.level(length - 1);
  const int32_t hidden = weights_.recurrent_.hidden;
  after_.reserve(level.inner_end - level.inner_begin, hidden);
  const auto run = [&](int32_t begin, int32_t end) {
    return Int8LstmLevel::Run{part(trie.parents(), begin, end), part(trie.characters(), begin, end)};
  };
  step_int8_lstm(weights_.recurrent_,
                 {.inner = run(level.inner_begin, level.inner_end),
                  .leaves = run(level.leaf_begin, level.leaf_end),
                  .first_parent = before.inner_begin,
                  .parents = before.inner_end - before.inner_begin,
                  .input = table_.view(),
                  .before = &before_,
                  .after = &after_,
                  .ends = ends_.reserve(LeftForm::kBf16, inner_ends + level.leaf_end - level.leaf_begin + 1, hidden),
                  .inner_ends = inner_ends_,
                  .first_leaf_end = inner_ends});
}

void Int8Encoder::give_vectors(const CharTrie::Level& level, int32_t inner_ends, MatrixView<float> out) {
  const int64_t ends = ends_.rows().rows - 1;
  const MatrixView<float> vectors = vectors_.reserve(ends, out.cols);
  fill_with(weights_.encoder_.output_bias.row(0), vectors);
  weights_.products_->multiply_columns(some_rows(ends_.rows(), 0, ends), weights_.output_, 0, true, vectors);
  for (int32_t i = 0; i < ends; ++i) {
    const int32_t node = i < inner_ends ? end_nodes_[static_cast<size_t>(i)] : level.leaf_begin + i - inner_ends;
    for (int32_t word = first_[static_cast<size_t>(node)]; word != kNone; word = next_[static_cast<size_t>(word)])
      std::copy_n(vectors.row(i), out.cols, out.row(word));
  }
}

}  // namespace streamvec
