// The projector half of text_vectors.h: two files of tab-separated columns.
#include <algorithm>
#include <cstring>

#include "streamvec/format/number_text.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/stored_table.h"
#include "streamvec/format/text_vectors.h"

namespace streamvec {
namespace {

std::string_view take_column(std::string_view& line) {
  const size_t tab = line.find('\t');
  const std::string_view column = line.substr(0, tab);
  line = tab == line.npos ? std::string_view() : line.substr(tab + 1);
  return column;
}

std::string_view column(std::string_view line, int64_t index) {
  while (index-- > 0) take_column(line);
  return take_column(line);
}

// The index of the column named "count", or -1.
int64_t find_count_column(std::string_view names) {
  for (int64_t index = 0; !names.empty(); ++index)
    if (take_column(names) == "count") return index;
  return -1;
}

Status bad_line(const InputStream& input, const std::string& what) {
  return error(Code::kInvalidArgument, input.path(), ": line ", input.line(), ": ", what);
}

Status parse_columns(const InputStream& input, std::string_view line, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const bool more = line.data() != nullptr && !line.empty();
    const std::string_view field = take_column(line);
    if (!more || parse_float(field.data(), field.data() + field.size(), values[i]) != field.data() + field.size())
      return bad_line(input, "value " + std::to_string(i + 1) + " of " + std::to_string(values.size()) +
                                 " is missing or not a number");
    if (count_not_finite(&values[i], 1) > 0)
      return bad_line(input, "value " + std::to_string(i + 1) + " is not finite; remove the row or mend it");
  }
  return line.empty() ? Status() : bad_line(input, "more than " + std::to_string(values.size()) + " values");
}

}  // namespace

Status write_projector(const Snapshot& snapshot, FileWriter& tensors, FileWriter& metadata) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary, kColumnEnds, "projector"));
  STREAMVEC_RETURN_IF_ERROR(metadata.write("word\tcount\n"));
  std::string line;
  for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot) {
    line.clear();
    for (const float value : snapshot.input.view().row_span(slot)) {
      if (!line.empty()) line += '\t';
      append_float(line, value);
    }
    STREAMVEC_RETURN_IF_ERROR(tensors.write(line += '\n'));
    line = snapshot.vocabulary.word(slot);
    STREAMVEC_RETURN_IF_ERROR(metadata.write(line += '\t' + std::to_string(snapshot.vocabulary.count(slot)) + '\n'));
  }
  return {};
}

Result<Snapshot> read_projector(InputStream& tensors, InputStream& metadata) {
  STREAMVEC_ASSIGN_OR_RETURN(auto words, metadata.next_line());
  const bool named = words && words->find('\t') != words->npos;
  const int64_t count_column = named ? find_count_column(*words) : -1;
  if (named) {
    STREAMVEC_ASSIGN_OR_RETURN(words, metadata.next_line());
  }
  STREAMVEC_ASSIGN_OR_RETURN(auto line, tensors.next_line());
  const int64_t dim = line ? std::count(line->begin(), line->end(), '\t') + 1 : 0;
  if (dim < 1 || dim > kDimMax) return error(Code::kInvalidArgument, tensors.path(), " holds no rows of numbers");
  STREAMVEC_ASSIGN_OR_RETURN(SnapshotBuilder builder,
                             SnapshotBuilder::make(dim, tensors.size() / static_cast<int64_t>(line->size() + 1) + 1));
  while (line && words) {
    const auto count = count_column < 0 ? 0 : parse_whole(column(*words, count_column));
    if (!count) return bad_line(metadata, "the count is not a whole number");
    const auto row = builder.add(column(*words, 0), *count);
    if (!row.ok()) return bad_line(metadata, row.status().message());
    STREAMVEC_RETURN_IF_ERROR(parse_columns(tensors, *line, {*row, static_cast<size_t>(dim)}));
    STREAMVEC_ASSIGN_OR_RETURN(line, tensors.next_line());
    STREAMVEC_ASSIGN_OR_RETURN(words, metadata.next_line());
  }
  if (line || words)
    return error(Code::kDataLoss, tensors.path(), " and ", metadata.path(), " part after ", builder.rows(),
                 " rows: one of them is longer; write them again");
  return builder.finish();
}

}  // namespace streamvec
