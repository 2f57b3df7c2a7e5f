#include "streamvec/format/word2vec_binary.h"

#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/stored_table.h"
#include "streamvec/format/text_vectors.h"

namespace streamvec {
namespace {

constexpr int64_t kValueBytes = 4;

Status at_offset(const InputStream& input, int64_t offset, const Status& status) {
  return error(status.code(), input.path(), ": byte ", offset, ": ", status.message());
}

Status cut_short(const InputStream& input, int64_t rows, int64_t rows_wanted) {
  return at_offset(input, input.offset(),
                   error(Code::kDataLoss, "the file ends within word ", rows + 1, " of ", rows_wanted,
                         "; it was cut short: fetch or write it again"));
}

// The line feed that word2vec.c puts after a vector stands before the next word.
Status skip_line_feed(InputStream& input) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view next, input.peek(1));
  if (next == "\n") input.skip(1);
  return {};
}

// Reads one word and its vector into the builder.
Status read_row(InputStream& input, int64_t rows_wanted, SnapshotBuilder& builder) {
  constexpr int64_t kHeadBytes = static_cast<int64_t>(Vocabulary::kWordBytesMax) + 1;
  STREAMVEC_RETURN_IF_ERROR(skip_line_feed(input));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view head, input.peek(kHeadBytes));
  const size_t space = head.find(' ');
  if (space == head.npos && static_cast<int64_t>(head.size()) < kHeadBytes)
    return cut_short(input, builder.rows(), rows_wanted);
  if (space == head.npos)
    return at_offset(input, input.offset(), error(Code::kDataLoss, "no word ends within ", head.size(), " bytes"));
  const auto row = builder.add(head.substr(0, space));
  if (!row.ok()) return at_offset(input, input.offset(), row.status());
  input.skip(static_cast<int64_t>(space) + 1);
  const int64_t bytes = builder.dim() * kValueBytes;
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view values, input.peek(bytes));
  if (static_cast<int64_t>(values.size()) < bytes) return cut_short(input, builder.rows() - 1, rows_wanted);
  decode_floats(FloatKind::kF32, values.data(), builder.dim(), *row);
  if (const int64_t bad = first_not_finite(*row, builder.dim()); bad < builder.dim())
    return at_offset(input, input.offset() + bad * kValueBytes,
                     error(Code::kInvalidArgument, "value ", bad + 1, " of word ", builder.rows(), " is not finite"));
  input.skip(bytes);
  return {};
}

}  // namespace

Result<Snapshot> read_word2vec_binary(InputStream& input) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto first, input.next_line());
  const auto header = parse_word2vec_header(first.value_or(""));
  if (!header) return error(Code::kInvalidArgument, input.path(), ": line 1 is not 'words dim'");
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t rows, check_word2vec_header(*header, input, kValueBytes));
  STREAMVEC_ASSIGN_OR_RETURN(SnapshotBuilder builder, SnapshotBuilder::make(header->dim, rows));
  while (builder.rows() < header->rows) STREAMVEC_RETURN_IF_ERROR(read_row(input, header->rows, builder));
  STREAMVEC_RETURN_IF_ERROR(skip_line_feed(input));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view rest, input.peek(1));
  if (!rest.empty())
    return at_offset(input, input.offset(),
                     error(Code::kDataLoss, "bytes follow the last of ", header->rows, " words"));
  return builder.finish();
}

Status write_word2vec_binary(const Snapshot& snapshot, FileWriter& file) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary, kWordEnds, "word2vec-bin"));
  STREAMVEC_RETURN_IF_ERROR(
      file.write(std::to_string(snapshot.vocabulary.size()) + " " + std::to_string(snapshot.dim()) + "\n"));
  std::string row;
  for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot) {
    row = snapshot.vocabulary.word(slot);
    row += ' ';
    row.append(reinterpret_cast<const char*>(snapshot.input.row(slot)),
               static_cast<size_t>(snapshot.dim() * kValueBytes));
    STREAMVEC_RETURN_IF_ERROR(file.write(row += '\n'));
  }
  return {};
}

}  // namespace streamvec
