// A character LSTM (or GRU) that turns spellings into vectors: last hidden state, then a linear layer. It runs over the
// trie of a batch's words (char_trie.h), level by level with one matrix product each, so that every distinct beginning
// is computed once, and comes back the same way, children added into parents.
//
// H hidden, C values a character, D dim, A characters. The products:
//   table = characters input + bias   (the batch's characters only), 4H columns (3H of a GRU)
//   z     = h(parent) recurrent + table(character): a row of the product for every inner node, not for every node
//   out   = h(word) output + output_bias
// Slopes point upwards (optim/optimizer.h): what comes back is the slope of whatever the caller climbs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/random.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/model/char_trie.h"

namespace streamvec {

enum class RecurrentCell { kLstm, kGru };

struct EncoderShape {
  int32_t characters = CharacterTable::kFixed;  // rows of the table to begin with
  int32_t characters_max = 8'192;               // how far it may grow
  int32_t character_dim = 128;
  int32_t hidden = 512;  // a multiple of 16
  int32_t dim = 200;
  RecurrentCell cell = RecurrentCell::kLstm;  // a GRU has three quarters of the cost
};

// The parameters of one encoder, or a slope for each of them.
struct EncoderParameters {
  // Zeroed. kInvalidArgument for a hidden size that is no multiple of 16 or a side below 1.
  static Result<EncoderParameters> make(const EncoderShape& shape);

  // As PyTorch begins: layers uniform in +-1 / sqrt(H), forget gates open (bias 1), characters of variance 1.
  void draw(uint64_t seed);
  // New characters, each drawn from its own seed.
  void grow(int32_t characters, uint64_t seed);
  // Draws all that may come, too: growing leaves them as they are from then on.
  void draw_all_characters(uint64_t seed);

  struct Named {
    const char* name;
    Matrix* values;
  };
  std::array<Named, 6> all();

  int32_t hidden() const { return static_cast<int32_t>(recurrent.rows()); }
  int32_t dim() const { return static_cast<int32_t>(output.cols()); }
  int32_t gates() const { return static_cast<int32_t>(bias.cols()) / hidden(); }  // 4 of an LSTM, 3 of a GRU

  Matrix characters;   // A x C
  Matrix input;        // C x 4H, gates in the order of kernel/lstm_cell.h; a GRU's C x 3H, as kernel/gru_cell.h
  Matrix recurrent;    // H x 4H
  Matrix bias;         // 1 x 4H
  Matrix output;       // H x D
  Matrix output_bias;  // 1 x D

 private:
  void draw_characters(int64_t begin, int64_t end, uint64_t seed);

  int64_t drawn_ = 0;  // characters
};

// The weights of forward_only(), as its products read them.
struct PackedEncoder {
  PackedFactor input, recurrent, output;
};

// Runs encoders of one shape; holds the memory of a run, one per thread. Parameters are only read.
class TrieLstm {
 public:
  TrieLstm();  // products in f32
  explicit TrieLstm(std::shared_ptr<const PackedGemm> products) : products_(std::move(products)) {}

  // Writes the vector of word i of the trie to row i of `out`. REQUIRES: out has the trie's words and the encoder's
  // dim; the trie's characters have rows.
  void forward(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<float> out);
  // The same without what backward() needs: less memory, faster. REQUIRES: packed is what pack() makes of the encoder,
  // once for any number of tries.
  void forward_only(const EncoderParameters& encoder, const PackedEncoder& packed, const CharTrie& trie,
                    MatrixView<float> out);
  PackedEncoder pack(const EncoderParameters& encoder) const;
  // Adds the slopes of the parameters, given those of `out`. REQUIRES: forward() with the same encoder and trie came
  // last; `slopes` has the encoder's shape.
  void backward(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<const float> out_slopes,
                EncoderParameters& slopes);

  // Multiply-adds of the products of the calls so far, as two flops each.
  double flops() const { return flops_; }

 private:
  void pack(const EncoderParameters& encoder, PackedEncoder& to) const;
  void run(const EncoderParameters& encoder, const PackedEncoder& packed, const CharTrie& trie, bool keep,
           MatrixView<float> out);
  void fill_table(const EncoderParameters& encoder, const PackedFactor& input, const CharTrie& trie);
  void reserve_states(const CharTrie& trie, bool keep);
  MatrixView<float> contribution(const LeftRows& states, const PackedFactor& weights, int32_t unit, int32_t units);
  void step_lstm(const CharTrie& trie, int32_t length, const PackedFactor& weights, bool keep);
  void step_gru(const CharTrie& trie, int32_t length, const PackedFactor& weights, bool keep);
  void finish_words(const CharTrie& trie, const PackedFactor& output, MatrixView<float> out);
  void climb_level(const CharTrie& trie, int32_t length);
  void climb_lstm(const CharTrie& trie, int32_t node, bool root, bool inner);
  void climb_gru(const CharTrie& trie, int32_t node, bool root);
  void climb_output(const EncoderParameters& encoder, const CharTrie& trie, MatrixView<const float> out_slopes,
                    EncoderParameters& slopes);
  void climb_table(const EncoderParameters& encoder, const CharTrie& trie, EncoderParameters& slopes);
  void product(const Factor& a, const PackedFactor& b, bool add, MatrixView<float> c);
  void product(const LeftRows& a, const PackedFactor& b, int64_t first, bool add, MatrixView<float> c);
  void product_once(const Factor& a, const Factor& b, bool add, MatrixView<float> c);

  std::shared_ptr<const PackedGemm> products_;
  int32_t hidden_ = 0, gates_ = 0;
  PackedEncoder packed_;           // of forward()
  PackedFactor recurrent_, once_;  // weights of all levels on the way back; a factor of one product
  RowBuffer letters_, table_;      // by the trie's alphabet: characters, and what they contribute
  RowBuffer product_;              // by inner node of one level; of an LSTM some units at a time
  RowBuffer h_, c_, kept_;         // by node; c_ of an LSTM only, h_ where somebody reads floats
  LeftBuffer bf16_;                // h once more, by node, where products read this
  LeftBuffer ends_;                // by word: h in bf16
  RowBuffer words_;                // by word: h
  RowBuffer dh_, dc_, dz_;         // likewise; dz_ by inner node, summed over its children
  RowBuffer dtable_, dwords_, dletters_;
  std::vector<uint8_t> reached_;  // by inner node: whether a child has come back
  double flops_ = 0;
};

}  // namespace streamvec
