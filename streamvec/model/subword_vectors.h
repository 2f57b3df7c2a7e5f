// What a trained subword model knows beyond the vectors of its vocabulary: the rows of its n-grams, of which any
// spelling's vector is made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/bucket_index.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/word_generator.h"
#include "streamvec/text/character_ngrams.h"

namespace streamvec {

// How n-grams lead to rows: what has to be saved beside the rows themselves.
struct SubwordIndex {
  NgramOptions ngrams;
  bool fold_case = false;
  std::vector<uint32_t> buckets;  // of each row

  std::string encode() const;
  // kDataLoss, with `path` and a byte offset, for anything that encode() does not write.
  static Result<SubwordIndex> decode(std::string_view bytes, const std::string& path);
};
// The file of a checkpoint that has it, and the names of its tables.
constexpr const char* kSubwordFile = "subword.bin";
constexpr const char* kSubwordWords = "subword.words";
constexpr const char* kSubwordBuckets = "subword.buckets";

class SubwordVectors final : public WordGenerator {
 public:
  // `words`: the words' own rows by slot, or none where only spellings are asked for. kDataLoss when buckets and rows
  // do not belong together.
  static Result<std::shared_ptr<const SubwordVectors>> make(SubwordIndex index, Matrix rows, Matrix words);

  // The mean over the spelling's n-grams, as fastText has it for words outside its vocabulary; those never met count
  // as zeros. A spelling that nothing is known of has a vector all the same: the mean of rows as they are before any
  // training, drawn by their n-grams (by all its bytes where it has none), which is near to nothing in particular.
  Status generate(std::string_view word, std::span<float> out) const override;
  bool folds_case() const override { return index_.fold_case; }

  const SubwordIndex& index() const { return index_; }
  const Matrix& rows() const { return rows_; }    // of n-grams, as index().buckets has them
  const Matrix& words() const { return words_; }  // by slot; may have no rows
  // The row of a bucket, or nullptr when it has none.
  const float* row_of(uint32_t bucket) const;

 private:
  SubwordVectors() = default;

  SubwordIndex index_;
  Matrix rows_, words_;
  BucketIndex by_bucket_;
};

// The vectors of words, as queries read them: the mean of each word's own row and the rows of its n-grams. Threads may
// be training meanwhile. REQUIRES: parameters.subwords; rows <= parameters.rows(); `out` has as many values as a row of
// `input` takes up.
void compose_row(Parameters& parameters, Slot slot, float* out);
Result<Matrix> composed_rows(Parameters& parameters, int64_t rows);
Result<Matrix> composed_rows(const Vocabulary& vocabulary, const SubwordVectors& subwords);
// A copy of the first rows of n-grams, those of `buckets`, for spellings alone. Threads may be training meanwhile.
Result<std::shared_ptr<const SubwordVectors>> copy_spellings(Parameters& parameters, std::vector<uint32_t> buckets);

}  // namespace streamvec
