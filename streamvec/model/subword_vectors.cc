#include "streamvec/model/subword_vectors.h"

#include <algorithm>
#include <cstring>

#include "streamvec/core/random.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr std::string_view kSubwordMagic = "svsubwrd";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kFoldCase = 1, kJamo = 2;  // flags
constexpr uint64_t kUnmetDraws = 5;           // keeps these draws apart from those of training

// The fixed part of subword.bin, little-endian as memory has it.
struct Header {
  char magic[8];
  uint32_t version;
  int32_t minn, maxn;
  uint32_t flags;
  int64_t bucket;
  int64_t rows;
};
static_assert(sizeof(Header) == 40);

Status damaged(const std::string& path, int64_t offset, const char* what) {
  return error(Code::kDataLoss, path, ": byte ", offset, ": ", what, "; the file was damaged");
}

// out (zeros) = the mean of the word's own row, if there is one, and of `count` n-grams whose rows row(i) gives
// (nullptr: zero).
template <typename RowOf>
void take_mean(const float* own, size_t count, RowOf row, int32_t dim, float* out) {
  const size_t parts = count + (own != nullptr ? 1 : 0);
  if (parts == 0) return;
  if (own != nullptr) add_scaled(own, 1, dim, out);
  for (size_t i = 0; i < count; ++i)
    if (const float* values = row(i); values != nullptr) add_scaled(values, 1, dim, out);
  const float share = 1.0f / static_cast<float>(parts);  // last, as fastText does: then every bit is the same
  for (int32_t d = 0; d < dim; ++d) out[d] *= share;
}

// out = the mean of rows of these buckets as they are before training.
void draw_mean(std::span<const uint32_t> buckets, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const float scale = 2.0f / static_cast<float>(out.size() * buckets.size());
  for (const uint32_t bucket : buckets) {
    Random random(mix(kUnmetDraws, bucket));
    for (float& value : out) value += (random.uniform() - 0.5f) * scale;
  }
}

}  // namespace

std::string SubwordIndex::encode() const {
  Header header{};
  std::memcpy(header.magic, kSubwordMagic.data(), sizeof header.magic);
  header.version = kVersion;
  header.minn = ngrams.minn;
  header.maxn = ngrams.maxn;
  header.flags = (fold_case ? kFoldCase : 0) | (ngrams.jamo ? kJamo : 0);
  header.bucket = ngrams.bucket;
  header.rows = static_cast<int64_t>(buckets.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(buckets.data()), buckets.size() * sizeof(uint32_t));
  return bytes;
}

Result<SubwordIndex> SubwordIndex::decode(std::string_view bytes, const std::string& path) {
  Header header;
  if (bytes.size() < sizeof header) return damaged(path, static_cast<int64_t>(bytes.size()), "the header is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, sizeof header.magic) != kSubwordMagic) return damaged(path, 0, "no svsubwrd");
  if (header.version != kVersion) return damaged(path, 8, "a version that is not known");
  SubwordIndex index{
      {header.minn, header.maxn, header.bucket, (header.flags & kJamo) != 0}, (header.flags & kFoldCase) != 0, {}};
  if (!check_ngrams(index.ngrams).ok() || header.flags > (kFoldCase | kJamo))
    return damaged(path, 12, "settings that cannot be");
  if (header.rows < 0 || header.rows > header.bucket ||
      bytes.size() - sizeof header != static_cast<size_t>(header.rows) * sizeof(uint32_t))
    return damaged(path, 32, "another number of buckets than follow");
  index.buckets.resize(static_cast<size_t>(header.rows));
  if (header.rows > 0) std::memcpy(index.buckets.data(), bytes.data() + sizeof header, bytes.size() - sizeof header);
  return index;
}

Result<std::shared_ptr<const SubwordVectors>> SubwordVectors::make(SubwordIndex index, Matrix rows, Matrix words) {
  STREAMVEC_RETURN_IF_ERROR(check_ngrams(index.ngrams));
  if (static_cast<int64_t>(index.buckets.size()) != rows.rows())
    return error(Code::kDataLoss, "there are ", rows.rows(), " rows for ", index.buckets.size(), " buckets");
  std::shared_ptr<SubwordVectors> made(new SubwordVectors());
  for (const uint32_t bucket : index.buckets) {
    if (bucket >= index.ngrams.bucket || made->by_bucket_.find(bucket) != BucketIndex::kNone)
      return error(Code::kDataLoss, "bucket ", bucket, " of ", index.ngrams.bucket, " is out of range or comes twice");
    made->by_bucket_.add(bucket);
  }
  made->index_ = std::move(index);
  made->rows_ = std::move(rows);
  made->words_ = std::move(words);
  return std::shared_ptr<const SubwordVectors>(std::move(made));
}

const float* SubwordVectors::row_of(uint32_t bucket) const {
  const uint32_t row = by_bucket_.find(bucket);
  return row == BucketIndex::kNone ? nullptr : rows_.row(row);
}

Status SubwordVectors::generate(std::string_view word, std::span<float> out) const {
  if (word.empty()) return error(Code::kInvalidArgument, "the empty string has no vector");
  std::vector<uint32_t> buckets;
  append_ngram_buckets(word, index_.ngrams, buckets);
  STREAMVEC_ASSIGN_OR_RETURN(Matrix mean, Matrix::make(1, static_cast<int64_t>(out.size())));  // padded, unlike `out`
  take_mean(
      nullptr, buckets.size(), [&](size_t i) { return row_of(buckets[i]); }, static_cast<int32_t>(out.size()),
      mean.row(0));
  std::copy_n(mean.row(0), out.size(), out.data());
  if (std::any_of(out.begin(), out.end(), [](float value) { return value != 0; })) return {};
  if (buckets.empty()) buckets.push_back(ngram_hash(word) % static_cast<uint32_t>(index_.ngrams.bucket));
  draw_mean(buckets, out);
  return {};
}

void compose_row(Parameters& parameters, Slot slot, float* out) {
  const SubwordTable& subwords = *parameters.subwords;
  const std::span<const SubwordTable::Row> ngrams = subwords.rows_of(slot);
  std::vector<Slot> numbers(ngrams.begin(), ngrams.end());  // the list may get another word meanwhile
  numbers.push_back(slot);
  const RowLocks::Guard guard(parameters.locks, numbers, {});
  take_mean(
      parameters.input.rows.row(slot), numbers.size() - 1,
      [&](size_t k) { return subwords.table.rows.row(numbers[k]); }, static_cast<int32_t>(parameters.dim()), out);
}

Result<Matrix> composed_rows(Parameters& parameters, int64_t rows) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix composed, Matrix::make(rows, parameters.dim()));
  for (int64_t i = 0; i < composed.rows(); ++i) compose_row(parameters, static_cast<Slot>(i), composed.row(i));
  return composed;
}

Result<std::shared_ptr<const SubwordVectors>> copy_spellings(Parameters& parameters, std::vector<uint32_t> buckets) {
  SubwordTable& subwords = *parameters.subwords;
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, Matrix::make(static_cast<int64_t>(buckets.size()), parameters.dim()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const Slot number = static_cast<Slot>(i);
    const RowLocks::Guard guard(parameters.locks, std::span(&number, 1), {});
    std::copy_n(subwords.table.rows.row(i), parameters.dim(), rows.row(i));
  }
  const SubwordTable::Options& options = subwords.options();
  return SubwordVectors::make({options.ngrams, options.fold_case, std::move(buckets)}, std::move(rows), Matrix());
}

Result<Matrix> composed_rows(const Vocabulary& vocabulary, const SubwordVectors& subwords) {
  STREAMVEC_CHECK_EQ(subwords.words().rows(), static_cast<int64_t>(vocabulary.size()));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix composed, Matrix::make(vocabulary.size(), subwords.words().cols()));
  std::vector<uint32_t> buckets;
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    buckets.clear();
    append_ngram_buckets(vocabulary.word(slot), subwords.index().ngrams, buckets);
    take_mean(
        subwords.words().row(slot), buckets.size(), [&](size_t i) { return subwords.row_of(buckets[i]); },
        static_cast<int32_t>(composed.cols()), composed.row(slot));
  }
  return composed;
}

}  // namespace streamvec
