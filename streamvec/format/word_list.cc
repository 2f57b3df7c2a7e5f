#include "streamvec/format/word_list.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <ostream>
#include <utility>

#include "streamvec/format/file_streambuf.h"
#include "streamvec/format/input_stream.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/vocab/vocab_file.h"

namespace streamvec {
namespace {

constexpr std::string_view kWordListEnding = ".vocab.tsv", kPlainWordsEnding = ".vocab.txt", kSumColumn = "xxh3=";
constexpr int64_t kListHeaderBytesMax = 4096;

Result<std::string> sum_in_header(const FileReader& file) {
  std::string head(static_cast<size_t>(std::min(file.size(), kListHeaderBytesMax)), '\0');
  STREAMVEC_RETURN_IF_ERROR(file.read(0, head.data(), static_cast<int64_t>(head.size())));
  head.resize(std::min(head.find('\n'), head.size()));
  const size_t at = head.find("\t" + std::string(kSumColumn));
  if (at == head.npos) return std::string();
  const std::string sum = head.substr(at + 1 + kSumColumn.size());
  return sum.substr(0, sum.find('\t'));
}

Result<WordList> read_word_list(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  WordList words{path, {}, ""};
  STREAMVEC_ASSIGN_OR_RETURN(words.values_sum, sum_in_header(file));
  FileReaderBuf buffer(file);
  std::istream in(&buffer);
  auto vocabulary = read_vocabulary(in, path);
  STREAMVEC_RETURN_IF_ERROR(buffer.status());
  if (!vocabulary.ok()) return vocabulary.status();
  words.vocabulary = std::move(*vocabulary);
  give_pseudo_counts(words.vocabulary);
  return words;
}

// A word a line, nothing else.
Result<WordList> read_plain_words(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(InputStream input, InputStream::open(path));
  WordList words{path, {}, ""};
  while (true) {
    STREAMVEC_ASSIGN_OR_RETURN(const auto word, input.next_line());
    if (!word) break;
    if (word->empty() || word->size() > Vocabulary::kWordBytesMax || words.vocabulary.find(*word) != kNoSlot)
      return error(Code::kInvalidArgument, path, ": line ", input.line(), ": an empty, overlong or repeated word");
    words.vocabulary.add(*word, 0);
  }
  give_pseudo_counts(words.vocabulary);
  return words;
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string without_ending(const std::string& path, std::string_view ending) {
  return path.ends_with(ending) ? path.substr(0, path.size() - ending.size()) : path;
}

std::string word_list_path(const std::string& path, std::string_view ending) {
  return without_ending(path, ending) + std::string(kWordListEnding);
}

Status write_word_list(const Vocabulary& vocabulary, uint64_t values_sum, FileWriter& file) {
  FileWriterBuf buffer(file);
  std::ostream out(&buffer);
  write_vocabulary(vocabulary, out, std::string(kSumColumn) + Checksum::to_text(values_sum));
  return buffer.status();
}

Result<WordList> find_word_list(const std::string& path, std::string_view ending) {
  const std::string exported = word_list_path(path, ending);
  const std::string plain = without_ending(path, ending) + std::string(kPlainWordsEnding);
  const std::string neighbour = directory_of(path) + "/vocab.tsv";
  if (file_exists(exported)) return read_word_list(exported);
  if (file_exists(plain)) return read_plain_words(plain);
  if (file_exists(neighbour)) return read_word_list(neighbour);
  return error(Code::kNotFound, "the words of ", path, " are neither in ", exported, " nor in ", plain,
               "; write one of the two, a line per row");
}

Status check_same_export(const WordList& words, const std::string& path, uint64_t values_sum) {
  if (words.values_sum.empty() || words.values_sum == Checksum::to_text(values_sum)) return {};
  return error(Code::kInvalidArgument, path, " and ", words.path,
               " are of different exports, so the words may belong to other vectors; export both again, or, if you "
               "changed the vectors yourself, rename the column ",
               kSumColumn, words.values_sum, " in the first line of ", words.path);
}

}  // namespace streamvec
