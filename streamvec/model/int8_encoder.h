// A character LSTM (trie_lstm.h) that only reads: its levels in whole numbers of 8 bits (kernel/int8_lstm.h), the
// output layer in bf16. Vectors differ from f32's in the fifth digit of their cosine; docs/BENCHMARKS.md has what it
// costs and gains.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/kernel/int8_lstm.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/model/char_trie.h"
#include "streamvec/model/trie_lstm.h"

namespace streamvec {

// An encoder as Int8Encoder reads it.
class Int8EncoderWeights {
 public:
  // Whether this CPU and this kind of cell can: AMX, and an LSTM.
  static bool can_hold(const EncoderParameters& encoder);
  // REQUIRES: can_hold(encoder), which stays as it is while this is used.
  explicit Int8EncoderWeights(const EncoderParameters& encoder);

 private:
  friend class Int8Encoder;
  const EncoderParameters& encoder_;
  std::shared_ptr<const PackedGemm> products_;
  RowBuffer bias_;  // in the order of the levels, as is what input_ makes
  PackedFactor input_, output_;
  Int8LstmWeights recurrent_;
};

// Holds the memory of a run, one per thread.
class Int8Encoder {
 public:
  explicit Int8Encoder(const Int8EncoderWeights& weights) : weights_(weights) {}

  // Writes the vector of word i of the trie to row i of `out`. REQUIRES: out has the trie's words and the encoder's
  // dim; the trie's characters have rows; its words were in alphabetical order.
  void forward(const CharTrie& trie, MatrixView<float> out);

 private:
  void fill_table(const CharTrie& trie);
  void find_words(const CharTrie& trie);
  int32_t number_ends(const CharTrie::Level& level);
  void step(const CharTrie& trie, int32_t length, int32_t inner_ends);
  void give_vectors(const CharTrie::Level& level, int32_t inner_ends, MatrixView<float> out);

  const Int8EncoderWeights& weights_;
  RowBuffer letters_, table_;          // by the trie's alphabet: characters, and what they contribute
  Int8LstmStates before_, after_;      // of two levels
  std::vector<int32_t> first_, next_;  // the last word that ends at a node, the one before that; kNone where none does
  std::vector<int32_t> end_nodes_;     // of a level, inner ones that words end at
  std::vector<int32_t> inner_ends_;    // by inner node of a level: its row of ends_
  LeftBuffer ends_;                    // of a level: h in bf16
  RowBuffer vectors_;                  // likewise
};

}  // namespace streamvec
