#include "streamvec/model/trie_lstm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "streamvec/kernel/gru_cell.h"
#include "streamvec/kernel/lstm_cell.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

void copy_row(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void fill_rows(const Matrix& row, MatrixView<float> to) {
  for (int64_t i = 0; i < to.rows; ++i) copy_row(row.row(0), to.cols, to.row(i));
}

// to += each of the rows of `from`
void add_rows(MatrixView<const float> from, float* to) {
  for (int64_t i = 0; i < from.rows; ++i)
    for (int64_t k = 0; k < from.cols; ++k) to[k] += from.row(i)[k];
}

// Of an LSTM: a level's product with their gates' weights is used while it is in the second cache, and they are a panel
// of each gate's.
constexpr int32_t kUnitsAtOnce = 32;

void draw_uniform(Matrix& matrix, float reach, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t k = 0; k < matrix.cols(); ++k) matrix.row(i)[k] = reach * (2 * random.uniform() - 1);
}

}  // namespace

Result<EncoderParameters> EncoderParameters::make(const EncoderShape& shape) {
  if (shape.hidden < 16 || shape.hidden % 16 != 0)
    return error(Code::kInvalidArgument, "the hidden size of a character LSTM must be a multiple of 16, not ",
                 shape.hidden, "; try ", std::max(16, (shape.hidden + 15) / 16 * 16));
  if (shape.characters < 1 || shape.character_dim < 1 || shape.dim < 1)
    return error(Code::kInvalidArgument, "an encoder of ", shape.characters, " characters of ", shape.character_dim,
                 " values and ", shape.dim, " dimensions cannot be");
  const int64_t gates = int64_t{shape.cell == RecurrentCell::kLstm ? kLstmGates : kGruGates} * shape.hidden;
  EncoderParameters made;
  STREAMVEC_ASSIGN_OR_RETURN(made.characters, Matrix::make(shape.characters, shape.character_dim,
                                                           std::max(shape.characters, shape.characters_max)));
  STREAMVEC_ASSIGN_OR_RETURN(made.input, Matrix::make(shape.character_dim, gates));
  STREAMVEC_ASSIGN_OR_RETURN(made.recurrent, Matrix::make(shape.hidden, gates));
  STREAMVEC_ASSIGN_OR_RETURN(made.bias, Matrix::make(1, gates));
  STREAMVEC_ASSIGN_OR_RETURN(made.output, Matrix::make(shape.hidden, shape.dim));
  STREAMVEC_ASSIGN_OR_RETURN(made.output_bias, Matrix::make(1, shape.dim));
  return made;
}

std::array<EncoderParameters::Named, 6> EncoderParameters::all() {
  return {{{"characters", &characters},
           {"input", &input},
           {"recurrent", &recurrent},
           {"bias", &bias},
           {"output", &output},
           {"output_bias", &output_bias}}};
}

void EncoderParameters::draw(uint64_t seed) {
  const float reach = 1 / std::sqrt(static_cast<float>(hidden()));
  uint64_t place = 0;
  for (Matrix* matrix : {&input, &recurrent, &bias, &output, &output_bias})
    draw_uniform(*matrix, reach, mix(seed, ++place));
  for (int32_t k = hidden(); gates() == kLstmGates && k < 2 * hidden(); ++k) bias.row(0)[k] = 1;
  draw_characters(0, characters.rows(), seed);
}

void EncoderParameters::grow(int32_t count, uint64_t seed) {
  const int64_t begin = std::max(characters.rows(), drawn_);
  if (count > characters.rows()) characters.grow(count);
  draw_characters(begin, characters.rows(), seed);
}

void EncoderParameters::draw_all_characters(uint64_t seed) {
  drawn_ = characters.rows_max();
  draw_characters(characters.rows(), drawn_, seed);
}

void EncoderParameters::draw_characters(int64_t begin, int64_t end, uint64_t seed) {
  const float reach = std::sqrt(3.0f);  // uniform in +-sqrt(3) has the variance 1
  for (int64_t i = begin; i < end; ++i) {
    Random random(mix(seed, uint64_t{0}, static_cast<uint64_t>(i)));
    for (int64_t k = 0; k < characters.cols(); ++k) characters.row(i)[k] = reach * (2 * random.uniform() - 1);
  }
}

TrieLstm::TrieLstm() : products_(std::move(make_packed_gemm("simd")).value()) {}

void TrieLstm::product(const Factor& a, const PackedFactor& b, bool add, MatrixView<float> c) {
  flops_ += 2.0 * static_cast<double>(c.rows) * static_cast<double>(c.cols) * static_cast<double>(a.cols());
  products_->multiply(a, b, add, c);
}

void TrieLstm::product(const LeftRows& a, const PackedFactor& b, int64_t first, bool add, MatrixView<float> c) {
  flops_ += 2.0 * static_cast<double>(c.rows) * static_cast<double>(c.cols) * static_cast<double>(a.cols);
  products_->multiply_columns(a, b, first, add, c);
}

void TrieLstm::product_once(const Factor& a, const Factor& b, bool add, MatrixView<float> c) {
  products_->pack(b, once_);
  product(a, once_, add, c);
}

PackedEncoder TrieLstm::pack(const EncoderParameters& encoder) const {
  PackedEncoder packed;
  pack(encoder, packed);
  return packed;
}

void TrieLstm::pack(const EncoderParameters& encoder, PackedEncoder& to) const {
  products_->pack(encoder.input, to.input);
  products_->pack(encoder.recurrent, to.recurrent);
  products_->pack(encoder.output, to.output);
}

void TrieLstm::forward(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<float> out) {
  pack(encoder, packed_);
  run(encoder, packed_, trie, true, out);
}

void TrieLstm::forward_only(const EncoderParameters& encoder, const PackedEncoder& packed, const CharTrie& trie,
                            MatrixView<float> out) {
  run(encoder, packed, trie, false, out);
}

void TrieLstm::run(const EncoderParameters& encoder, const PackedEncoder& packed, const CharTrie& trie, bool keep,
                   MatrixView<float> out) {
  STREAMVEC_CHECK_EQ(out.rows, int64_t{trie.words()});
  STREAMVEC_CHECK_EQ(out.cols, int64_t{encoder.dim()});
  hidden_ = encoder.hidden();
  gates_ = encoder.gates();
  reserve_states(trie, keep);
  fill_table(encoder, packed.input, trie);
  for (int32_t length = 1; length < trie.levels(); ++length)
    gates_ == kLstmGates ? step_lstm(trie, length, packed.recurrent, keep)
                         : step_gru(trie, length, packed.recurrent, keep);
  fill_rows(encoder.output_bias, out);
  finish_words(trie, packed.output, out);
}

// h of all nodes in each form that somebody reads; nothing for the empty beginning, which may be a word.
void TrieLstm::reserve_states(const CharTrie& trie, bool keep) {
  const bool lstm = gates_ == kLstmGates, floats = !lstm || products_->left_form() == LeftForm::kFloat;
  const int64_t nodes = trie.nodes();
  if (lstm) c_.reserve(keep ? nodes : trie.inner(), hidden_);
  static_assert(kLstmGates == kGruKept);
  if (keep) kept_.reserve(nodes, kGruKept * hidden_);
  h_.reserve(keep || floats ? nodes : 0, hidden_);
  bf16_.reserve(LeftForm::kBf16, floats ? 0 : nodes, hidden_);
  if (h_.view().rows > 0) std::fill_n(h_.row(0), hidden_, 0.0f);
  if (!floats) std::fill_n(bf16_.rows().row<uint16_t>(0), hidden_, uint16_t{0});
}

void TrieLstm::finish_words(const CharTrie& trie, const PackedFactor& output, MatrixView<float> out) {
  const auto node_of = [&](int32_t word) { return trie.word_nodes()[static_cast<size_t>(word)]; };
  if (h_.view().rows > 0) {
    const MatrixView<float> words = words_.reserve(trie.words(), hidden_);
    for (int32_t i = 0; i < trie.words(); ++i) copy_row(h_.row(node_of(i)), hidden_, words.row(i));
    return product(words, output, true, out);
  }
  const LeftRows &states = bf16_.rows(), ends = ends_.reserve(states.form, trie.words(), hidden_);
  for (int32_t i = 0; i < trie.words(); ++i)
    std::copy_n(states.row<uint16_t>(node_of(i)), hidden_, ends.row<uint16_t>(i));
  product(ends, output, 0, true, out);
}

void TrieLstm::fill_table(const EncoderParameters& encoder, const PackedFactor& input, const CharTrie& trie) {
  const auto size = static_cast<int64_t>(trie.alphabet().size());
  const MatrixView<float> letters = letters_.reserve(size, encoder.characters.cols());
  for (int64_t i = 0; i < size; ++i)
    copy_row(encoder.characters.row(trie.alphabet()[static_cast<size_t>(i)]), letters.cols, letters.row(i));
  const MatrixView<float> table = table_.reserve(size, gates_ * hidden_);
  fill_rows(encoder.bias, table);
  product(letters, input, true, table);
}

// What states contribute to some units, gate by gate.
MatrixView<float> TrieLstm::contribution(const LeftRows& states, const PackedFactor& weights, int32_t unit,
                                         int32_t units) {
  const MatrixView<float> sums = product_.reserve(states.rows, int64_t{gates_} * units);
  if (units == hidden_) {
    product(states, weights, 0, false, sums);
    return sums;
  }
  for (int32_t gate = 0; gate < gates_; ++gate)
    product(states, weights, int64_t{gate} * hidden_ + unit, false,
            {sums.data + gate * units, sums.rows, units, sums.stride});
  return sums;
}

// Where nothing is kept products and cells take turns by units: what is multiplied is used before it leaves the cache,
// and a part of the weights stays there while all rows of the level pass.
void TrieLstm::step_lstm(const CharTrie& trie, int32_t length, const PackedFactor& weights, bool keep) {
  const CharTrie::Level &level = trie.level(length), &before = trie.level(length - 1);
  const LeftRows states = products_->left_form() == LeftForm::kFloat ? left_rows(h_.view()) : bf16_.rows();
  const LeftRows parents = some_rows(states, before.inner_begin, before.inner_end - before.inner_begin);
  // For the way back whole rows are written, which is quicker to do row by row.
  const int32_t units = keep || hidden_ % kUnitsAtOnce != 0 ? hidden_ : kUnitsAtOnce;
  LstmSteps steps{.parents = trie.parents(),
                  .characters = trie.characters(),
                  .recurrent = {},
                  .first_parent = before.inner_begin,
                  .input = table_.view(),
                  .c_before = {},
                  .c = {},
                  .gates = keep ? kept_.view() : MatrixView<float>{},
                  .h = h_.view(),
                  .bf16 = bf16_.rows()};
  LstmSteps to_leaves = steps;
  if (keep) to_leaves.bf16 = {};  // vectors come of h
  // Where all of a node's c is asked for, its units lie side by side; else nodes do, which is quicker to go through.
  const auto c_of = [&](int32_t unit) {
    const MatrixView<float> c = c_.view();
    return keep ? MatrixView<float>{c.data + unit, c.rows, units, c.stride}
                : MatrixView<float>{c.data + int64_t{unit} * trie.inner(), trie.inner(), units, units};
  };
  for (int32_t unit = 0; unit < hidden_; unit += units) {
    steps.c = c_of(unit);
    steps.c_before = to_leaves.c_before = steps.c;
    if (keep) to_leaves.c = steps.c;
    if (length > 1) steps.recurrent = to_leaves.recurrent = contribution(parents, weights, unit, units);
    lstm_forward(steps, level.inner_begin, level.inner_end, unit, unit + units);
    lstm_forward(to_leaves, level.leaf_begin, level.leaf_end, unit, unit + units);
  }
}

void TrieLstm::step_gru(const CharTrie& trie, int32_t length, const PackedFactor& weights, bool keep) {
  const CharTrie::Level &level = trie.level(length), &before = trie.level(length - 1);
  const int64_t inner = before.inner_end - before.inner_begin;
  if (length > 1)
    product(some_rows(h_.view(), before.inner_begin, inner), weights, false,
            product_.reserve(inner, int64_t{gates_} * hidden_));
  const auto step = [&](int32_t begin, int32_t end) {
    for (int32_t node = begin; node < end; ++node) {
      const int32_t parent = trie.parents()[static_cast<size_t>(node)];
      gru_forward({.recurrent = length > 1 ? product_.row(parent - before.inner_begin) : nullptr,
                   .input = table_.row(trie.characters()[static_cast<size_t>(node)]),
                   .h_before = length > 1 ? h_.row(parent) : nullptr,
                   .kept = keep ? kept_.row(node) : nullptr,
                   .h = h_.row(node)},
                  hidden_);
    }
  };
  step(level.inner_begin, level.inner_end);
  step(level.leaf_begin, level.leaf_end);
}

void TrieLstm::backward(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<const float> out_slopes,
                        EncoderParameters& slopes) {
  STREAMVEC_CHECK_EQ(out_slopes.rows, int64_t{trie.words()});
  dtable_.reserve_zeroed(static_cast<int64_t>(trie.alphabet().size()), gates_ * hidden_);
  if (gates_ == kLstmGates) dc_.reserve(trie.inner(), hidden_);
  dz_.reserve(trie.inner(), gates_ * hidden_);
  reached_.assign(static_cast<size_t>(trie.inner()), 0);
  climb_output(encoder, trie, out_slopes, slopes);
  products_->pack(transposed(encoder.recurrent), recurrent_);
  for (int32_t length = trie.levels() - 1; length >= 1; --length) {
    climb_level(trie, length);
    const CharTrie::Level& before = trie.level(length - 1);
    const int64_t inner = before.inner_end - before.inner_begin;
    if (length > 1)
      product(some_rows(dz_.view(), before.inner_begin, inner), recurrent_, true,
              some_rows(dh_.view(), before.inner_begin, inner));
  }
  // Not node 0, whose h is nothing.
  product_once(transposed(some_rows(h_.view(), 1, trie.inner() - 1)), some_rows(dz_.view(), 1, trie.inner() - 1), true,
               slopes.recurrent.view());
  climb_table(encoder, trie, slopes);
}

void TrieLstm::climb_output(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<const float> out_slopes,
                            EncoderParameters& slopes) {
  const MatrixView<float> words = dwords_.reserve(trie.words(), hidden_);
  product_once(out_slopes, transposed(encoder.output), false, words);
  product_once(transposed(words_.view()), out_slopes, true, slopes.output.view());
  add_rows(out_slopes, slopes.output_bias.row(0));
  dh_.reserve_zeroed(trie.nodes(), hidden_);
  for (int32_t i = 0; i < trie.words(); ++i)
    add_scaled(words.row(i), 1, hidden_, dh_.row(trie.word_nodes()[static_cast<size_t>(i)]));
}

void TrieLstm::climb_level(const CharTrie& trie, int32_t length) {
  const auto climb = [&](int32_t begin, int32_t end, bool inner) {
    for (int32_t node = begin; node < end; ++node) {
      gates_ == kLstmGates ? climb_lstm(trie, node, length == 1, inner) : climb_gru(trie, node, length == 1);
      reached_[static_cast<size_t>(trie.parents()[static_cast<size_t>(node)])] = 1;
    }
  };
  const CharTrie::Level& level = trie.level(length);
  climb(level.inner_begin, level.inner_end, true);
  climb(level.leaf_begin, level.leaf_end, false);
}

void TrieLstm::climb_lstm(const CharTrie& trie, int32_t node, bool root, bool inner) {
  const int32_t parent = trie.parents()[static_cast<size_t>(node)];
  lstm_backward({.gates = kept_.row(node),
                 .c = c_.row(node),
                 .c_before = root ? nullptr : c_.row(parent),
                 .dh = dh_.row(node),
                 .dc = inner ? dc_.row(node) : nullptr,
                 .first = reached_[static_cast<size_t>(parent)] == 0,
                 .dz_sum = root ? nullptr : dz_.row(parent),
                 .dz_input = dtable_.row(trie.characters()[static_cast<size_t>(node)]),
                 .dc_before = root ? nullptr : dc_.row(parent)},
                hidden_);
}

void TrieLstm::climb_gru(const CharTrie& trie, int32_t node, bool root) {
  const int32_t parent = trie.parents()[static_cast<size_t>(node)];
  gru_backward({.kept = kept_.row(node),
                .h_before = root ? nullptr : h_.row(parent),
                .dh = dh_.row(node),
                .first = reached_[static_cast<size_t>(parent)] == 0,
                .dz_sum = root ? nullptr : dz_.row(parent),
                .dz_input = dtable_.row(trie.characters()[static_cast<size_t>(node)]),
                .dh_before = root ? nullptr : dh_.row(parent)},
               hidden_);
}

void TrieLstm::climb_table(const EncoderParameters& encoder, const CharTrie& trie, EncoderParameters& slopes) {
  product_once(transposed(letters_.view()), dtable_.view(), true, slopes.input.view());
  add_rows(dtable_.view(), slopes.bias.row(0));
  const MatrixView<float> letters = dletters_.reserve(dtable_.view().rows, encoder.characters.cols());
  product_once(dtable_.view(), transposed(encoder.input), false, letters);
  for (int64_t i = 0; i < letters.rows; ++i) {
    float* row = slopes.characters.row(trie.alphabet()[static_cast<size_t>(i)]);
    for (int64_t k = 0; k < letters.cols; ++k) row[k] += letters.row(i)[k];
  }
}

}  // namespace streamvec
