#include "streamvec/format/fasttext_bin.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "streamvec/format/input_stream.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/stored_table.h"
#include "streamvec/model/subword_vectors.h"

namespace streamvec {
namespace {

constexpr int32_t kFasttextMagic = 793712314, kVersion = 12, kVersionOld = 11;
constexpr int64_t kEntryBytesMin = 11;  // of the dictionary: a letter, its NUL, count and type

enum Loss : int32_t { kHierarchical = 1, kNegatives = 2, kSoftmax = 3, kOneVsAll = 4 };
enum Kind : int32_t { kCbow = 1, kSkipGram = 2, kSupervised = 3 };

// The settings as they stand in the file, after magic and version.
struct Settings {
  int32_t dim, window = 5, epochs = 1, min_count = 1, negatives = 10, word_ngrams = 1;
  int32_t loss = kNegatives, kind = kSkipGram;
  int32_t bucket = 0, minn = 0, maxn = 0, rate_update = 100;
  double sample = 1e-4;
};
static_assert(sizeof(Settings) == 56);

struct DictionaryHead {
  int32_t size, words, labels;
  int64_t tokens, pruned;
};
constexpr int64_t kDictionaryHeadBytes = 28;

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class Reader {
 public:
  Reader(InputStream input, FileReader file) : input_(std::move(input)), file_(std::move(file)) {}

  Result<Snapshot> read() {
    STREAMVEC_RETURN_IF_ERROR(read_settings());
    STREAMVEC_RETURN_IF_ERROR(read_dictionary());
    offset_ = input_.offset();
    STREAMVEC_RETURN_IF_ERROR(read_input());
    STREAMVEC_RETURN_IF_ERROR(read_output());
    if (offset_ != file_.size()) return at(offset_, Code::kDataLoss, "bytes follow the end");
    return std::move(snapshot_);
  }

 private:
  template <typename... Parts>
  Status at(int64_t offset, Code code, const Parts&... parts) const {
    return error(code, file_.path(), ": byte ", offset, ": ", parts...);
  }
  Status cut_short() const {
    return at(file_.size(), Code::kDataLoss, "the file ends here, it was cut short; fetch it again");
  }

  template <typename T>
  Result<T> next() {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view bytes, input_.peek(sizeof(T)));
    if (bytes.size() < sizeof(T)) return cut_short();
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    input_.skip(sizeof value);
    return value;
  }

  Status read_settings() {
    STREAMVEC_ASSIGN_OR_RETURN(const int32_t magic, next<int32_t>());
    if (magic != kFasttextMagic) return at(0, Code::kInvalidArgument, "this is no .bin file of fastText");
    STREAMVEC_ASSIGN_OR_RETURN(const int32_t version, next<int32_t>());
    if (version != kVersion && version != kVersionOld)
      return at(4, Code::kInvalidArgument, "version ", version, " of fastText's format, known are ", kVersionOld,
                " and ", kVersion);
    STREAMVEC_ASSIGN_OR_RETURN(settings_, next<Settings>());
    if (settings_.kind == kSupervised)
      return at(36, Code::kInvalidArgument,
                "a supervised model, whose vectors are of texts and labels; only skip-gram and CBOW can be imported");
    if (settings_.dim < 1 || settings_.dim > kDimMax || (settings_.kind != kCbow && settings_.kind != kSkipGram) ||
        settings_.loss < kHierarchical || settings_.loss > kOneVsAll || settings_.bucket < 0 ||
        settings_.maxn > kNgramMax)
      return at(8, Code::kDataLoss, "settings that cannot be (dim ", settings_.dim, ", bucket ", settings_.bucket,
                ", maxn ", settings_.maxn, "); the file is damaged");
    return {};
  }

  Status read_dictionary() {
    const int64_t begin = input_.offset();
    DictionaryHead head;
    STREAMVEC_ASSIGN_OR_RETURN(head.size, next<int32_t>());
    STREAMVEC_ASSIGN_OR_RETURN(head.words, next<int32_t>());
    STREAMVEC_ASSIGN_OR_RETURN(head.labels, next<int32_t>());
    STREAMVEC_ASSIGN_OR_RETURN(head.tokens, next<int64_t>());
    STREAMVEC_ASSIGN_OR_RETURN(head.pruned, next<int64_t>());
    if (head.pruned >= 0) return at(begin + 20, Code::kInvalidArgument, kQuantised);
    if (head.words < 1 || head.labels != 0 || head.size != head.words ||
        head.words > (file_.size() - begin) / kEntryBytesMin)
      return at(begin, Code::kDataLoss, "a dictionary of ", head.size, " entries with ", head.words, " words and ",
                head.labels, " labels does not fit; the file was cut short or is damaged");
    snapshot_.vocabulary.reserve(head.words, 8 * int64_t{head.words});
    while (snapshot_.vocabulary.size() < head.words) STREAMVEC_RETURN_IF_ERROR(read_entry());
    give_pseudo_counts(snapshot_.vocabulary);
    return {};
  }

  Status read_entry() {
    const int64_t begin = input_.offset();
    constexpr int64_t kWordMax = static_cast<int64_t>(Vocabulary::kWordBytesMax);
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view head, input_.peek(kWordMax + 1));
    const size_t size = head.find('\0');
    if (size == head.npos && static_cast<int64_t>(head.size()) <= kWordMax) return cut_short();
    if (size == head.npos || size == 0)
      return at(begin, Code::kDataLoss, "no word of 1 to ", kWordMax, " bytes stands here; the file is damaged");
    const std::string word(head.substr(0, size));
    input_.skip(static_cast<int64_t>(size) + 1);
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, next<int64_t>());
    STREAMVEC_ASSIGN_OR_RETURN(const int8_t type, next<int8_t>());
    Vocabulary& words = snapshot_.vocabulary;
    if (type != 0 || count < 0 || count > std::numeric_limits<int64_t>::max() - words.tokens())
      return at(begin, Code::kDataLoss, "an entry of type ", int{type}, " with count ", count, "; the file is damaged");
    if (words.find(word) != kNoSlot) return at(begin, Code::kDataLoss, "'", word, "' was there already");
    words.add(word, count);
    return {};
  }

  // Whether a table is quantised, and its shape; offset_ is then at its values.
  Result<StoredTable> read_shape() {
    struct Shape {
      int64_t rows, cols;
    } shape;
    char quantised = 0;
    if (file_.size() - offset_ < static_cast<int64_t>(1 + sizeof shape)) return cut_short();
    STREAMVEC_RETURN_IF_ERROR(file_.read(offset_, &quantised, 1));
    if (quantised != 0) return at(offset_, Code::kInvalidArgument, kQuantised);
    STREAMVEC_RETURN_IF_ERROR(file_.read(offset_ + 1, reinterpret_cast<char*>(&shape), sizeof shape));
    offset_ += static_cast<int64_t>(1 + sizeof shape);
    if (shape.cols != settings_.dim || shape.rows < 0 ||
        shape.rows > (file_.size() - offset_) / (int64_t{4} * settings_.dim))
      return at(offset_, Code::kDataLoss, "a table of ", shape.rows, " rows of ", shape.cols, " values (dim ",
                settings_.dim, ") does not fit; the file was cut short or is damaged");
    return StoredTable{offset_, shape.rows, shape.cols, FloatKind::kF32};
  }

  Result<Matrix> take_rows(int64_t rows) {
    TableReading reading;
    STREAMVEC_ASSIGN_OR_RETURN(Matrix table,
                               read_table(file_, {offset_, rows, settings_.dim, FloatKind::kF32}, 0, reading));
    if (reading.not_finite > 0)
      return at(reading.not_finite_offset, Code::kInvalidArgument, "the first of ", reading.not_finite,
                " values that are not finite");
    offset_ += rows * settings_.dim * 4;
    return table;
  }

  Status read_input() {
    const int64_t begin = offset_;
    STREAMVEC_ASSIGN_OR_RETURN(const StoredTable table, read_shape());
    const int64_t words = snapshot_.vocabulary.size();
    if (table.rows != words + settings_.bucket)
      return at(begin, Code::kDataLoss, table.rows, " rows for ", words, " words and ", settings_.bucket,
                " buckets; the file is damaged");
    STREAMVEC_ASSIGN_OR_RETURN(Matrix own, take_rows(words));
    if (settings_.bucket > 0 && settings_.maxn > 0) return make_subwords(std::move(own));
    offset_ += int64_t{settings_.bucket} * settings_.dim * 4;  // of word n-grams, which such a model never reads
    snapshot_.model = settings_.kind == kCbow ? "cbow" : "sgns";
    snapshot_.input = std::move(own);
    return {};
  }

  Status make_subwords(Matrix own) {
    SubwordIndex index;
    index.ngrams = {std::max(settings_.minn, 1), settings_.maxn, settings_.bucket};
    index.buckets.resize(static_cast<size_t>(settings_.bucket));
    std::iota(index.buckets.begin(), index.buckets.end(), 0u);
    STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, take_rows(settings_.bucket));
    auto subwords = SubwordVectors::make(std::move(index), std::move(rows), std::move(own));
    if (!subwords.ok()) return at(8, subwords.status().code(), subwords.status().message());
    STREAMVEC_ASSIGN_OR_RETURN(snapshot_.input, composed_rows(snapshot_.vocabulary, **subwords));
    snapshot_.generator = std::move(*subwords);
    snapshot_.model = "subword";
    return {};
  }

  Status read_output() {
    const int64_t begin = offset_;
    STREAMVEC_ASSIGN_OR_RETURN(const StoredTable table, read_shape());
    if (table.rows != snapshot_.vocabulary.size())
      return at(begin, Code::kDataLoss, table.rows, " rows of output for ", snapshot_.vocabulary.size(),
                " words; the file is damaged");
    STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, take_rows(table.rows));
    if (settings_.loss != kHierarchical) snapshot_.output = std::move(rows);
    return {};
  }

  static constexpr const char* kQuantised =
      "a quantised model (.ftz), whose vectors are approximations; import the .bin that it was made from";

  InputStream input_;  // settings and dictionary
  FileReader file_;    // tables
  int64_t offset_ = 0;
  Settings settings_;
  Snapshot snapshot_;
};

Status check_words(const Vocabulary& vocabulary) {
  for (Slot slot = 0; slot < vocabulary.size(); ++slot)
    if (vocabulary.word(slot).find('\0') != std::string_view::npos)
      return error(Code::kInvalidArgument, "word number ", slot + 1,
                   " holds a NUL, which fasttext-bin cannot carry; try --format safetensors");
  return {};
}

Status write_dictionary(const Vocabulary& vocabulary, FileWriter& file) {
  std::string bytes;
  append(bytes, vocabulary.size());
  append(bytes, vocabulary.size());
  append(bytes, int32_t{0});
  append(bytes, vocabulary.tokens());
  append(bytes, int64_t{-1});
  STREAMVEC_RETURN_IF_ERROR(file.write(bytes));
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    bytes = vocabulary.word(slot);
    bytes += '\0';
    append(bytes, vocabulary.count(slot));
    append(bytes, int8_t{0});
    STREAMVEC_RETURN_IF_ERROR(file.write(bytes));
  }
  return {};
}

Status write_shape(int64_t rows, int64_t cols, FileWriter& file) {
  std::string bytes(1, '\0');  // not quantised
  append(bytes, rows);
  append(bytes, cols);
  return file.write(bytes);
}

Status write_finite(const float* row, int64_t dim, FileWriter& file) {
  if (count_not_finite(row, dim) > 0)
    return error(Code::kInvalidArgument, "a row of the model is not finite; train with a smaller --lr");
  return file.write({reinterpret_cast<const char*>(row), static_cast<size_t>(dim) * sizeof(float)});
}

Status write_table(const Matrix& rows, FileWriter& file) {
  for (int64_t i = 0; i < rows.rows(); ++i) STREAMVEC_RETURN_IF_ERROR(write_finite(rows.row(i), rows.cols(), file));
  return {};
}

}  // namespace

bool looks_like_fasttext_bin(std::string_view head) {
  return head.size() >= sizeof kFasttextMagic && std::memcmp(head.data(), &kFasttextMagic, sizeof kFasttextMagic) == 0;
}

Result<Snapshot> read_fasttext_bin(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(InputStream input, InputStream::open(path));
  STREAMVEC_ASSIGN_OR_RETURN(FileReader file, FileReader::open(path));
  return Reader(std::move(input), std::move(file)).read();
}

Status write_fasttext_bin(const Snapshot& snapshot, FileWriter& file) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary));
  const auto* subwords = dynamic_cast<const SubwordVectors*>(snapshot.generator.get());
  if (subwords != nullptr && subwords->index().ngrams.jamo)
    return error(
        Code::kInvalidArgument,
        "fastText has no n-grams of jamo, its vectors would be others; train without --jamo, or export the words "
        "alone with --format word2vec-bin");
  Settings settings{.dim = static_cast<int32_t>(snapshot.dim())};
  settings.kind = snapshot.model == "cbow" ? kCbow : kSkipGram;
  if (subwords != nullptr) {
    const NgramOptions& ngrams = subwords->index().ngrams;
    settings.bucket = static_cast<int32_t>(ngrams.bucket);
    settings.minn = ngrams.minn;
    settings.maxn = ngrams.maxn;
  }
  std::string head;
  append(head, kFasttextMagic);
  append(head, kVersion);
  append(head, settings);
  STREAMVEC_RETURN_IF_ERROR(file.write(head));
  STREAMVEC_RETURN_IF_ERROR(write_dictionary(snapshot.vocabulary, file));
  const int64_t words = snapshot.vocabulary.size(), dim = snapshot.dim();
  const std::vector<float> zeros(static_cast<size_t>(dim));
  STREAMVEC_RETURN_IF_ERROR(write_shape(words + settings.bucket, dim, file));
  STREAMVEC_RETURN_IF_ERROR(write_table(subwords != nullptr ? subwords->words() : snapshot.input, file));
  for (int32_t bucket = 0; bucket < settings.bucket; ++bucket) {
    const float* row = subwords->row_of(static_cast<uint32_t>(bucket));
    STREAMVEC_RETURN_IF_ERROR(write_finite(row != nullptr ? row : zeros.data(), dim, file));
  }
  STREAMVEC_RETURN_IF_ERROR(write_shape(words, dim, file));
  if (snapshot.output.rows() == words) return write_table(snapshot.output, file);
  for (int64_t i = 0; i < words; ++i) STREAMVEC_RETURN_IF_ERROR(write_finite(zeros.data(), dim, file));
  return {};
}

}  // namespace streamvec
