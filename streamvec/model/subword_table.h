// Rows of hashed character n-grams (text/character_ngrams.h), and which of them each word of a vocabulary has.
//
// A bucket gets a row when the first word that has it comes, so that the table is as large as the n-grams met (some
// 200,000 for 50,000 words) and not as the buckets there are; as frequent words come first, their rows lie together.
// A bucket without a row stands for a row of zeros. Rows stay when the words that brought them are gone, as they say
// something of words to come: there are at most as many as buckets.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/bucket_index.h"
#include "streamvec/model/table.h"
#include "streamvec/text/character_ngrams.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// One thread at a time sets words; readers may ask for rows meanwhile. Lists of words that are replaced are used again:
// who still reads such a list finds rows of some other word in it, never anything that is no row.
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
  // kInvalidArgument for lengths or buckets that cannot be, kResourceExhausted for more words or buckets than fit.
  static Result<SubwordTable> make(const Options& options);

  // Gives the slot's word its n-grams, in place of those of the word that had the slot before. Buckets met for the
  // first time get a row, uniform in +-1/dim and drawn by seed and bucket alone. REQUIRES: 0 <= slot < words_max.
  void set_word(Slot slot, std::string_view word);
  // Row numbers, one as often as the word has its n-gram; empty before set_word(). Good until the slot has another
  // word, and readable after that.
  using Row = std::atomic<uint32_t>;
  std::span<const Row> rows_of(Slot slot) const;
  // Fetches what rows_of() will read, for who asks a little later.
  void expect(Slot slot) const {
    const Row* list = lists_[static_cast<size_t>(slot)].load(std::memory_order_acquire);
    if (list == nullptr) return;
    __builtin_prefetch(list);
    __builtin_prefetch(list + 16);
  }

  std::span<const uint32_t> buckets() const { return index_.buckets(); }  // of each row
  // Takes over rows from a checkpoint, by their buckets, before any word is set. kDataLoss when a bucket is out of
  // range or comes twice, or rows and buckets differ in number. REQUIRES: no rows yet.
  Status adopt(std::span<const uint32_t> buckets, const Matrix& rows);
  // Gives these buckets new rows in this order, so that the table goes with another that has them so.
  void add_buckets(std::span<const uint32_t> buckets);
  int64_t lists_bytes() const { return blocks_bytes_; }  // memory of all lists, in use or not

  Table table;
  const Options& options() const { return options_; }

 private:
  uint32_t row_of(uint32_t bucket);
  Row* place_for(size_t size);

  Options options_;
  BucketIndex index_;
  // Of each slot: how many rows, how many there is room for, the rows. Lists lie in blocks and never move.
  std::vector<std::atomic<Row*>> lists_;
  std::vector<std::unique_ptr<Row[]>> blocks_;
  int64_t blocks_bytes_ = 0;
  size_t block_left_ = 0;
  Row* block_next_ = nullptr;
  std::map<size_t, std::vector<Row*>> free_;  // by the room they have
  std::vector<uint32_t> found_;
};

// kInvalidArgument, with the option's name, for lengths and buckets that cannot be trained with.
Status check_ngrams(const NgramOptions& options);

}  // namespace streamvec
