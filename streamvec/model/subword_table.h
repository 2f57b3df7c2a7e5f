// Rows of hashed character n-grams (text/character_ngrams.h), and which of them each word of a vocabulary has.
//
// A bucket gets a row when the first word that has it comes, so that the table is as large as the n-grams met (some
// 200,000 for 50,000 words) and not as the buckets there are; as frequent words come first, their rows lie together.
// A bucket without a row stands for a row of zeros.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/table.h"
#include "streamvec/text/character_ngrams.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Readers may ask for the rows of one word while another thread sets those of another.
class SubwordTable {
 public:
  struct Options {
    NgramOptions ngrams;
    int64_t dim = 200;
    OptimizerKind optimizer = OptimizerKind::kSgd;
    uint64_t seed = 1;
    int64_t words_max = 0;   // slots below this may get a word
    bool fold_case = false;  // the vocabulary is case-folded: spellings that are asked for have to be, too
  };
  // kInvalidArgument for lengths or buckets that cannot be.
  static Result<SubwordTable> make(const Options& options);

  // Gives the slot's word its n-grams. Buckets met for the first time get a row, uniform in +-1/dim and drawn by seed
  // and bucket alone. REQUIRES: 0 <= slot < words_max.
  void set_word(Slot slot, std::string_view word);
  // Row numbers, one as often as the word has its n-gram; empty before set_word().
  std::span<const uint32_t> rows_of(Slot slot) const;

  std::span<const uint32_t> buckets() const { return buckets_; }  // of each row
  // Takes over rows from a checkpoint, by their buckets, before any word is set. kDataLoss when a bucket is out of
  // range or comes twice, or rows and buckets differ in number. REQUIRES: no rows yet.
  Status adopt(std::span<const uint32_t> buckets, const Matrix& rows);

  Table table;
  const Options& options() const { return options_; }

 private:
  uint32_t row_of(uint32_t bucket);
  uint32_t* new_list(size_t size);

  Options options_;
  std::vector<uint32_t> row_plus_one_;  // by bucket; 0: none
  std::vector<uint32_t> buckets_;       // by row
  // Each list begins with its length. They lie in blocks and never move; those of replaced words stay.
  std::unique_ptr<std::atomic<const uint32_t*>[]> lists_;
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
  size_t block_left_ = 0;
  uint32_t* block_next_ = nullptr;
  std::vector<uint32_t> found_;
};

// kInvalidArgument, with the option's name, for lengths and buckets that cannot be trained with.
Status check_ngrams(const NgramOptions& options);

}  // namespace streamvec
