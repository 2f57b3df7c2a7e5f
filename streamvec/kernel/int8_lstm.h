// Steps of an LSTM from all states of one level of a trie (model/char_trie.h) to those of the next, in whole numbers of
// 8 bits on AMX tiles: for reading a trained layer in bulk, not for training it. Weights are rounded to 127ths of a
// column's largest, states to 127ths; c is kept in f16, and gates have absolute errors below 1.5e-4.
//
// A product never leaves the first cache: 16 parents by the four gates of 16 units are four tiles, and the cells of
// these parents' children use them while the tiles of the next 16 are under way. So all is laid out by 16 units.
#pragma once

#include <cstdint>
#include <span>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/left_rows.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {

// AMX with whole numbers of 8 bits, and the AVX-512 that comes with it.
bool cpu_has_amx_int8();

// The recurrent weights of one layer.
struct Int8LstmWeights {
  // REQUIRES: recurrent is H x 4H, gates in the order of lstm_cell.h, H a multiple of 16.
  void pack(MatrixView<const float> recurrent);

  int32_t hidden = 0;
  AlignedBuffer<int8_t> tiles;  // by 16 units, 64 of the depth and gate
  AlignedBuffer<float> units;   // by 16 units and gate: what 1 in a sum is
};

// What characters contribute (bias included), in the order in which levels read it: by 16 units, then by gate, and
// twice as much for tanh. A row of 4H values.
void order_int8_lstm_input(const float* row, int32_t hidden, float* to);

// h and c of some beginnings.
class Int8LstmStates {
 public:
  // What stands in them at first is what was left there.
  void reserve(int32_t rows, int32_t hidden);
  void set_zero();

  // From some units on, by row: a multiple of 64 for h, of 16 for c.
  int8_t* h(int32_t unit) const { return h_ + int64_t{unit} * rows_; }
  uint16_t* c(int32_t unit) const { return c_ + int64_t{unit} * rows_; }
  int32_t rows() const { return rows_; }

 private:
  int32_t rows_ = 0, hidden_ = 0;  // rows with those that only tiles read
  int8_t* h_ = nullptr;
  uint16_t* c_ = nullptr;
  AlignedBuffer<int8_t> h_memory_;
  AlignedBuffer<uint16_t> c_memory_;
};

// Nodes of one level that something follows, and leaves. REQUIRES: each run in the order of its parents.
struct Int8LstmLevel {
  struct Run {
    std::span<const int32_t> parents, characters;  // by node; a parent's row in `before` is its number - first_parent
  };
  Run inner, leaves;
  int32_t first_parent = 0, parents = 0;
  MatrixView<const float> input;  // by character, as order_int8_lstm_input() leaves it
  const Int8LstmStates* before = nullptr;
  Int8LstmStates* after = nullptr;      // by inner node: out
  LeftRows ends;                        // bf16, out: 2 h where words end
  std::span<const int32_t> inner_ends;  // by inner node: its row of `ends`, perhaps one that nobody reads
  int32_t first_leaf_end = 0;           // the row of the first leaf; those of the others follow
};
// REQUIRES: cpu_has_amx_int8().
void step_int8_lstm(const Int8LstmWeights& weights, const Int8LstmLevel& level);

}  // namespace streamvec
