#include "streamvec/model/subword_vectors.h"

#include <algorithm>
#include <cstring>

#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr std::string_view kMagic = "svsubwrd";
constexpr uint32_t kVersion = 1;

// The fixed part of subword.bin, little-endian as memory has it.
struct Header {
  char magic[8];
  uint32_t version;
  int32_t minn, maxn;
  uint32_t fold_case;
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

}  // namespace

std::string SubwordIndex::encode() const {
  Header header{};
  std::memcpy(header.magic, kMagic.data(), sizeof header.magic);
  header.version = kVersion;
  header.minn = ngrams.minn;
  header.maxn = ngrams.maxn;
  header.fold_case = fold_case ? 1 : 0;
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
  if (std::string_view(header.magic, sizeof header.magic) != kMagic) return damaged(path, 0, "no svsubwrd");
  if (header.version != kVersion) return damaged(path, 8, "a version that is not known");
  SubwordIndex index{{header.minn, header.maxn, header.bucket}, header.fold_case != 0, {}};
  if (!check_ngrams(index.ngrams).ok() || header.fold_case > 1) return damaged(path, 12, "settings that cannot be");
  if (header.rows < 0 || header.rows > header.bucket ||
      bytes.size() - sizeof header != static_cast<size_t>(header.rows) * sizeof(uint32_t))
    return damaged(path, 32, "another number of buckets than follow");
  index.buckets.resize(static_cast<size_t>(header.rows));
  std::memcpy(index.buckets.data(), bytes.data() + sizeof header, bytes.size() - sizeof header);
  return index;
}

Result<std::shared_ptr<const SubwordVectors>> SubwordVectors::make(SubwordIndex index, Matrix rows, Matrix words) {
  STREAMVEC_RETURN_IF_ERROR(check_ngrams(index.ngrams));
  if (static_cast<int64_t>(index.buckets.size()) != rows.rows())
    return error(Code::kDataLoss, "there are ", rows.rows(), " rows for ", index.buckets.size(), " buckets");
  std::shared_ptr<SubwordVectors> made(new SubwordVectors());
  made->row_plus_one_.resize(static_cast<size_t>(index.ngrams.bucket));
  for (size_t row = 0; row < index.buckets.size(); ++row) {
    const uint32_t bucket = index.buckets[row];
    if (bucket >= made->row_plus_one_.size() || made->row_plus_one_[bucket] != 0)
      return error(Code::kDataLoss, "bucket ", bucket, " of ", index.ngrams.bucket, " is out of range or comes twice");
    made->row_plus_one_[bucket] = static_cast<uint32_t>(row) + 1;
  }
  made->index_ = std::move(index);
  made->rows_ = std::move(rows);
  made->words_ = std::move(words);
  return std::shared_ptr<const SubwordVectors>(std::move(made));
}

const float* SubwordVectors::row_of(uint32_t bucket) const {
  const uint32_t row_plus_one = row_plus_one_[bucket];
  return row_plus_one == 0 ? nullptr : rows_.row(row_plus_one - 1);
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
  return {};
}

Result<Matrix> composed_rows(Parameters& parameters, int64_t rows) {
  const SubwordTable& subwords = *parameters.subwords;
  STREAMVEC_ASSIGN_OR_RETURN(Matrix composed, Matrix::make(rows, parameters.dim()));
  std::vector<Slot> locked;
  for (int64_t i = 0; i < composed.rows(); ++i) {
    const Slot slot = static_cast<Slot>(i);
    const std::span<const uint32_t> ngrams = subwords.rows_of(slot);
    locked.assign(ngrams.begin(), ngrams.end());
    locked.push_back(slot);
    const RowLocks::Guard guard(parameters.locks, locked, {});
    take_mean(
        parameters.input.rows.row(i), ngrams.size(), [&](size_t k) { return subwords.table.rows.row(ngrams[k]); },
        static_cast<int32_t>(composed.cols()), composed.row(i));
  }
  return composed;
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
