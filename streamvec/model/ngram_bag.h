// A bag of hashed character n-grams that makes the vector of a spelling, fitted to the vectors that words have.
//
// The vector of a word is sum over its n-grams g of s(g) z(g), where s(g) grows with the n-gram's length and the
// squares of a word's s sum to 1. The rows z are those of a weighted ridge regression,
//   min  sum over words of weight |target - vector|^2  +  shrinkage * sum over n-grams of |z|^2,
// so that what only a few words share says little. It is solved by its dual, a word at a time (Shalev-Shwartz, Zhang
// 2013): each word keeps a row a with z(g) = 1 / shrinkage * sum over words of s(g) a, and a step puts a to its best
// value given all others. That has no learning rate, follows targets that move, and takes back exactly what a word
// that goes has said.
//
// Or it is taught by moves, as n-grams that are trained with the words are: when a word's vector has moved, its n-grams
// take kShared of that by their s, and the rest stays with the word, in the row that is a's otherwise. A word's vector
// is sum over g of s(g) z(g) plus what has stayed with it: it is where it has moved to, plus what the moves of others
// have done to its n-grams since. What a word that goes has said to its n-grams stays there.
//
// An n-gram gets a row when a second word has it, since one word alone has nothing to tell others, and keeps it until
// none has. Characters are code points, Hangul in jamo, bytes where there is no UTF-8; marks stand before and behind
// the word.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Which n-grams there are, how they are weighted, and how far their rows are drawn to nothing.
struct NgramBagOptions {
  int32_t minn = 3;
  int32_t maxn = 6;
  int32_t length_step = 1;    // n-grams of every length, or of every second one, and so on, from minn on
  int32_t short_minn = 3;     // spellings too short for two lengths of those have shorter ones down to this, too
  bool by_moves = false;      // how it is taught
  int32_t bucket_bits = 21;   // hashes are taken modulo 2^this; fewer: more n-grams share a row
  float length_power = 1.5f;  // s goes with length^this; more: long n-grams, which say more, have more to say
  float shrinkage = 0.3f;     // more: bolder n-grams are held back, rare ones most
};

// Buckets and weights of a spelling's n-grams.
struct NgramFeature {
  uint32_t bucket;
  float weight;
};
void ngram_features(std::string_view word, const NgramBagOptions& options, std::vector<NgramFeature>& out);

// Used by one thread at a time, but for compose() and move().
class NgramBag {
 public:
  using Options = NgramBagOptions;
  static constexpr float kShared = 0.8f;  // of a move; more: words spelled alike follow each other further
  // Of a thread that calls compose() and move().
  struct Scratch {
    std::vector<float*> rows;
    std::vector<float> weights;
  };
  // Slots below words_max may get a word. kResourceExhausted for more words or buckets than fit.
  static Result<NgramBag> make(const Options& options, int64_t dim, int64_t words_max);

  // Gives the slot a word. What a former word of the slot has said is taken back.
  void set_word(Slot slot, std::string_view word);
  // How many rows of n-grams a fit() of the slot reads and writes: what it costs.
  int64_t cost(Slot slot) const;
  // All slots that were told a word, those with the same n-grams at their beginning next to each other.
  std::vector<Slot> slots_by_ngrams() const;
  // For who fits these slots next, in that order, and says so before each: fetches what fit() will read and write for
  // the first, which rows these are for the second, and where that stands for the third. Slots without a word are
  // passed over.
  void expect(std::span<const Slot, 3> next) const;
  // Lets the word say what its vector should be. `target` has a padded row's length. REQUIRES: the slot has a word;
  // weight > 0.
  void fit(Slot slot, const float* target, float weight);

  // Taught by moves, of different slots by several threads at once, without locks: two that meet in an n-gram's row may
  // lose part of a move. All are padded rows. REQUIRES: the slot has a word, and none is told meanwhile.
  void compose(Slot slot, Scratch& scratch, float* out);
  // The word has moved by `change`; of that, n-grams are told `shared`.
  void move(Slot slot, const float* change, const float* shared, Scratch& scratch);
  // The word goes `times` so far by itself.
  void keep(Slot slot, const float* change, float times) {
    add_scaled(change, times, static_cast<int32_t>(dim()), duals_.row(slot));
  }

  // Adds the vector of any spelling to `out`, a padded row. Returns how much of a word's vector n-grams without a row
  // would have made and what stays with a word: what is not known of the spelling.
  float add_vector(std::string_view word, float* out) const;
  // Likewise of a slot's word.
  void add_vector(Slot slot, float* out) const;

  // What a checkpoint keeps. Rows without an n-gram have the bucket kNoBucket.
  static constexpr uint32_t kNoBucket = ~uint32_t{0};
  std::span<const uint32_t> buckets() const { return buckets_; }
  const Matrix& rows() const { return rows_; }
  const Matrix& duals() const { return duals_; }
  // Takes it back, before any word is set; `duals` may have no rows where the bag is only asked. kDataLoss for buckets
  // that are out of range or come twice, and for rows that are not as many.
  Status adopt(std::span<const uint32_t> buckets, MatrixView<const float> rows, MatrixView<const float> duals);

  const Options& options() const { return options_; }
  int64_t dim() const { return rows_.cols(); }

 private:
  static constexpr uint32_t kOneWord = uint32_t{1} << 31;
  // An n-gram of a word, as often as the word has it: its row, or its bucket with kOneWord while no other word has it.
  struct Part {
    uint32_t place;
    float weight;
    bool has_row() const { return (place & kOneWord) == 0; }
  };
  using Word = std::vector<Part>;  // in the order of the spelling, so that sums are the same whenever rows have come

  float find_rows(Slot slot, Scratch& scratch);
  void forget(Slot slot);
  void share(uint32_t bucket, Slot other);

  Options options_;
  std::vector<uint32_t> table_;    // by bucket: nothing, the only slot that has it (kOneWord set), or a row + 1
  std::vector<uint32_t> buckets_;  // by row
  std::vector<uint32_t> users_;    // by row: how often words have it
  std::vector<uint32_t> free_rows_;
  Matrix rows_, duals_;
  std::vector<Word> words_;  // by slot
  RowBuffer scratch_;
  std::vector<float*> pointers_;
  std::vector<float> weights_;
  std::vector<NgramFeature> features_;
};

}  // namespace streamvec
