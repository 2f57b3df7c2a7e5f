#include "streamvec/format/text_vectors.h"

#include <algorithm>
#include <cstring>

#include "streamvec/format/number_text.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/stored_table.h"

namespace streamvec {
namespace {

constexpr int64_t kRowsGuessed = 1024;  // where nothing says how many will come

std::string_view trim_end(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

// Takes the last field off `line`.
std::string_view take_last_field(std::string_view& line) {
  line = trim_end(line);
  size_t begin = line.size();
  while (begin > 0 && !is_blank(line[begin - 1])) --begin;
  const std::string_view field = line.substr(begin);
  line = trim_end(line.substr(0, begin));
  return field;
}

bool is_number(std::string_view field) {
  float ignored = 0;
  return parse_float(field.data(), field.data() + field.size(), ignored) == field.data() + field.size();
}

// Values separated by blanks, as many as `out` has room for. Returns how many came before the end or what is no
// number; `rest` is what stands there.
int64_t parse_values(std::string_view text, std::span<float> out, std::string_view& rest) {
  const char* at = text.data();
  const char* const end = at + text.size();
  int64_t count = 0;
  for (; count < static_cast<int64_t>(out.size()); ++count) {
    while (at != end && is_blank(*at)) ++at;
    const char* next = at == end ? nullptr : parse_float(at, end, out[static_cast<size_t>(count)]);
    if (next == nullptr) break;
    at = next;
  }
  rest = trim_end({at, static_cast<size_t>(end - at)});
  return count;
}

// How many values a row has that stands alone: its numbers from the end backwards, less the word.
int64_t count_values(std::string_view line) {
  int64_t count = 0;
  for (; !line.empty(); ++count)
    if (!is_number(take_last_field(line))) return count;
  return count - 1;
}

// A row whose word has blanks in it: the last values are numbers, and what stands before them is not.
std::optional<std::string_view> parse_blank_word_row(std::string_view line, std::span<float> values) {
  std::string_view word = trim_end(line);
  for (size_t i = values.size(); i-- > 0;) {
    const std::string_view field = take_last_field(word);
    if (word.empty() || parse_float(field.data(), field.data() + field.size(), values[i]) == nullptr)
      return std::nullopt;
  }
  std::string_view before = word;
  if (is_number(take_last_field(before))) return std::nullopt;
  return word;
}

// Fills `values` and returns the row's word.
Result<std::string_view> parse_row(std::string_view line, std::span<float> values) {
  const size_t blank = std::min(line.find(' '), line.find('\t'));
  const std::string_view word = line.substr(0, blank);
  std::string_view rest;
  const int64_t count = blank == line.npos ? 0 : parse_values(line.substr(blank), values, rest);
  if (count == static_cast<int64_t>(values.size()) && rest.empty()) return word;
  if (!rest.empty())
    if (const auto wide = parse_blank_word_row(line, values)) return *wide;
  if (count == static_cast<int64_t>(values.size()))
    return error(Code::kInvalidArgument, "more than ", values.size(), " values");
  if (rest.empty()) return error(Code::kInvalidArgument, count, " values where ", values.size(), " are wanted");
  return error(Code::kInvalidArgument, "value ", count + 1, " is not a number");
}

Status at_line(const InputStream& input, const Status& status) {
  return error(status.code(), input.path(), ": line ", input.line(), ": ", status.message());
}

Status add_row(std::string_view line, std::span<float> scratch, SnapshotBuilder& builder) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view word, parse_row(line, scratch));
  const int64_t dim = static_cast<int64_t>(scratch.size());
  if (const int64_t bad = first_not_finite(scratch.data(), dim); bad < dim)
    return error(Code::kInvalidArgument, "value ", bad + 1, " is not finite; remove the row or mend it");
  STREAMVEC_ASSIGN_OR_RETURN(float* row, builder.add(word));
  std::memcpy(row, scratch.data(), scratch.size_bytes());
  return {};
}

// After the last row there may be empty lines and nothing else.
Status expect_end(InputStream& input, std::string_view what) {
  while (true) {
    STREAMVEC_ASSIGN_OR_RETURN(const auto line, input.next_line());
    if (!line) return {};
    if (!line->empty()) return at_line(input, error(Code::kDataLoss, what));
  }
}

Status write_rows_as_text(const Snapshot& snapshot, FileWriter& file) {
  std::string line;
  for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot) {
    line = snapshot.vocabulary.word(slot);
    for (const float value : snapshot.input.view().row_span(slot)) {
      line += ' ';
      append_float(line, value);
    }
    line += '\n';
    STREAMVEC_RETURN_IF_ERROR(file.write(line));
  }
  return {};
}

}  // namespace

std::optional<Word2vecHeader> parse_word2vec_header(std::string_view line) {
  std::string_view rest = trim_end(line);
  const std::string_view dim = take_last_field(rest);
  const auto is_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  if (!is_digits(dim) || !is_digits(rest)) return std::nullopt;
  // A number beyond int64_t is a header all the same, and one that no file can satisfy.
  return Word2vecHeader{parse_whole(rest).value_or(INT64_MAX), parse_whole(dim).value_or(INT64_MAX)};
}

Result<int64_t> check_word2vec_header(const Word2vecHeader& header, const InputStream& input, int64_t value_bytes_min) {
  const auto bad = [&](const std::string& what) {
    return error(Code::kDataLoss, input.path(), ": line 1: the header says ", header.rows, " words of ", header.dim,
                 " values, ", what);
  };
  if (header.rows == 0 || header.dim == 0) return bad("which is no vectors at all; check that the file is whole");
  if (header.dim > kDimMax || header.rows > INT32_MAX) return bad("which is more than can be; the header is damaged");
  if (input.compressed()) return std::min(header.rows, kRowsGuessed);
  if (header.rows > (input.size() - input.offset()) / (value_bytes_min * header.dim + 2))
    return bad("more than a file of " + std::to_string(input.size()) +
               " bytes can hold; it was cut short or its header is wrong");
  return header.rows;
}

Result<Snapshot> read_word2vec_text(InputStream& input) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto first, input.next_line());
  const auto header = parse_word2vec_header(first.value_or(""));
  if (!header) return error(Code::kInvalidArgument, input.path(), ": line 1 is not 'words dim'");
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t rows, check_word2vec_header(*header, input, 2));
  STREAMVEC_ASSIGN_OR_RETURN(SnapshotBuilder builder, SnapshotBuilder::make(header->dim, rows));
  std::vector<float> scratch(static_cast<size_t>(header->dim));
  while (builder.rows() < header->rows) {
    STREAMVEC_ASSIGN_OR_RETURN(const auto line, input.next_line());
    if (!line)
      return error(Code::kDataLoss, input.path(), ": byte ", input.offset(), ": the file ends after ", builder.rows(),
                   " words; its first line says ", header->rows);
    if (const Status status = add_row(*line, scratch, builder); !status.ok()) return at_line(input, status);
  }
  STREAMVEC_RETURN_IF_ERROR(expect_end(input, "more words than the first line says"));
  return builder.finish();
}

Result<Snapshot> read_glove(InputStream& input) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto first, input.next_line());
  const std::string line(first.value_or(""));
  const int64_t dim = count_values(line);
  if (dim < 1 || dim > kDimMax)
    return error(Code::kInvalidArgument, input.path(), ": line 1 is not a word and its values; ",
                 "check that it is a file of vectors");
  // Lines are about as long as the first; address space that is not used costs nothing.
  const int64_t rows = input.compressed() ? kRowsGuessed : input.size() / static_cast<int64_t>(line.size()) * 5 / 4 + 1;
  STREAMVEC_ASSIGN_OR_RETURN(SnapshotBuilder builder, SnapshotBuilder::make(dim, rows));
  std::vector<float> scratch(static_cast<size_t>(dim));
  std::optional<std::string_view> row = line;
  while (row && !row->empty()) {
    if (const Status status = add_row(*row, scratch, builder); !status.ok()) return at_line(input, status);
    STREAMVEC_ASSIGN_OR_RETURN(row, input.next_line());
  }
  if (row) STREAMVEC_RETURN_IF_ERROR(expect_end(input, "a row after an empty line"));
  return builder.finish();
}

Status write_word2vec_text(const Snapshot& snapshot, FileWriter& file) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary, kWordEnds, "word2vec"));
  STREAMVEC_RETURN_IF_ERROR(
      file.write(std::to_string(snapshot.vocabulary.size()) + " " + std::to_string(snapshot.dim()) + "\n"));
  return write_rows_as_text(snapshot, file);
}

Status write_glove(const Snapshot& snapshot, FileWriter& file) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary, kWordEnds, "glove"));
  return write_rows_as_text(snapshot, file);
}

Status check_words(const Vocabulary& vocabulary, std::string_view forbidden, std::string_view format) {
  int64_t bad = 0;
  Slot first = kNoSlot;
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    if (vocabulary.word(slot).find_first_of(forbidden) == std::string_view::npos) continue;
    if (bad++ == 0) first = slot;
  }
  if (bad == 0) return {};
  return error(Code::kInvalidArgument, "the format ", format, " cannot carry white space in words, and ", bad,
               " have some, the first '", vocabulary.word(first), "'; npy and safetensors can carry them");
}

}  // namespace streamvec
