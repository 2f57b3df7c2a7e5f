#include "streamvec/format/vectors.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "streamvec/core/durable_file.h"
#include "streamvec/format/fasttext_bin.h"
#include "streamvec/format/input_stream.h"
#include "streamvec/format/npy.h"
#include "streamvec/format/safetensors.h"
#include "streamvec/format/snapshot_builder.h"
#include "streamvec/format/stored_table.h"
#include "streamvec/format/text_vectors.h"
#include "streamvec/format/word2vec_binary.h"
#include "streamvec/format/word_list.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

struct FormatName {
  VectorFormat format;
  const char* name;
};
constexpr FormatName kFormatNames[] = {{VectorFormat::kWord2vecText, "word2vec"},
                                       {VectorFormat::kWord2vecBinary, "word2vec-bin"},
                                       {VectorFormat::kGlove, "glove"},
                                       {VectorFormat::kNpy, "npy"},
                                       {VectorFormat::kSafetensors, "safetensors"},
                                       {VectorFormat::kProjector, "projector"},
                                       {VectorFormat::kFasttextBin, "fasttext-bin"}};

Status check_finite(const Snapshot& snapshot) {
  for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot)
    if (count_not_finite(snapshot.input.row(slot), snapshot.dim()) > 0)
      return error(Code::kInvalidArgument, "the vector of '", snapshot.vocabulary.word(slot),
                   "' is not finite; train with a smaller --lr");
  return {};
}

// Said of the path that was given: files are written beside it first.
Status check_directory_of(const std::string& path) {
  std::error_code unknown;
  if (fs::is_directory(directory_of(path), unknown)) return {};
  return file_error(unknown ? unknown.value() : ENOTDIR, "create", path);
}

template <typename Write>
Status export_file(const std::string& path, Write write) {
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::create(path));
  STREAMVEC_RETURN_IF_ERROR(write(file.writer()));
  return file.commit();
}

// The words first: after a crash between the two, those of .npy and .safetensors say that the old values are not
// theirs.
Status commit_both(DurableFile& words, DurableFile& values) {
  STREAMVEC_RETURN_IF_ERROR(values.prepare());
  STREAMVEC_RETURN_IF_ERROR(words.prepare());
  STREAMVEC_RETURN_IF_ERROR(words.commit());
  return values.commit();
}

// `write` puts the table into a FileWriter and returns the sum of the word vectors' values.
template <typename Write>
Status export_with_words(const Snapshot& snapshot, const std::string& path, std::string_view ending, Write write) {
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile values, DurableFile::create(path));
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile words, DurableFile::create(word_list_path(path, ending)));
  STREAMVEC_ASSIGN_OR_RETURN(const uint64_t sum, write(values.writer()));
  STREAMVEC_RETURN_IF_ERROR(write_word_list(snapshot.vocabulary, sum, words.writer()));
  return commit_both(words, values);
}

Status export_npy(const Snapshot& snapshot, const std::string& path) {
  return export_with_words(snapshot, path, ".npy",
                           [&](FileWriter& file) { return write_npy(snapshot.input.view(), file); });
}

Status export_safetensors(const Snapshot& snapshot, const std::string& path) {
  std::vector<NamedMatrix> tensors = {{"input", snapshot.input.view()}};
  if (snapshot.output.rows() > 0) tensors.push_back({"output", snapshot.output.view()});
  return export_with_words(snapshot, path, ".safetensors", [&](FileWriter& file) -> Result<uint64_t> {
    STREAMVEC_ASSIGN_OR_RETURN(const std::vector<FilePart> parts,
                               write_safetensors(file, {{"format", "streamvec"}, {"model", snapshot.model}}, tensors));
    return parts[1].checksum;  // behind the header
  });
}

Status export_projector(const Snapshot& snapshot, const std::string& path) {
  STREAMVEC_RETURN_IF_ERROR(check_words(snapshot.vocabulary, kColumnEnds, "projector"));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return file_error(errno, "create the directory", path);
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile tensors, DurableFile::create(path + "/tensors.tsv"));
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile metadata, DurableFile::create(path + "/metadata.tsv"));
  STREAMVEC_RETURN_IF_ERROR(write_projector(snapshot, tensors.writer(), metadata.writer()));
  return commit_both(metadata, tensors);
}

// Whether a table of numbers belongs to its words, and holds what vectors hold.
Status check_table(const std::string& path, int64_t rows, int64_t words, const TableReading& reading) {
  if (rows != words)
    return error(Code::kInvalidArgument, path, " has ", rows, " rows, its list of words ", words,
                 "; they do not belong together");
  if (rows == 0) return error(Code::kInvalidArgument, path, " holds no vectors; check that it was written");
  if (reading.not_finite > 0)
    return error(Code::kInvalidArgument, path, ": byte ", reading.not_finite_offset, ": the first of ",
                 reading.not_finite, " values that are not finite; remove those rows or mend them");
  return {};
}

Result<Snapshot> import_npy(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  STREAMVEC_ASSIGN_OR_RETURN(const StoredTable table, find_npy_table(file));
  STREAMVEC_ASSIGN_OR_RETURN(WordList words, find_word_list(path, ".npy"));
  STREAMVEC_RETURN_IF_ERROR(check_table(path, table.rows, words.vocabulary.size(), {}));
  Snapshot snapshot;
  TableReading reading;
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, read_table(file, table, 0, reading));
  STREAMVEC_RETURN_IF_ERROR(check_table(path, table.rows, table.rows, reading));
  STREAMVEC_RETURN_IF_ERROR(check_same_export(words, path, reading.checksum));
  snapshot.vocabulary = std::move(words.vocabulary);
  return snapshot;
}

Result<Matrix> read_checked(const SafetensorsReader& file, const TensorInfo& tensor, int64_t words,
                            TableReading& reading) {
  if (!tensor.shape.empty()) STREAMVEC_RETURN_IF_ERROR(check_table(file.path(), tensor.shape[0], words, {}));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix table, file.read(tensor, 0, reading));
  STREAMVEC_RETURN_IF_ERROR(check_table(file.path(), table.rows(), words, reading));
  return table;
}

Result<Snapshot> import_safetensors(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::open(path));
  const TensorInfo* input = file.find("input");
  if (input == nullptr && file.tensors().size() == 1) input = &file.tensors()[0];
  if (input == nullptr)
    return error(Code::kInvalidArgument, path, " has ", file.tensors().size(),
                 " tensors and none is named 'input'; save the vectors under that name");
  STREAMVEC_ASSIGN_OR_RETURN(WordList words, find_word_list(path, ".safetensors"));
  Snapshot snapshot;
  TableReading reading, output_reading;
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, read_checked(file, *input, words.vocabulary.size(), reading));
  STREAMVEC_RETURN_IF_ERROR(check_same_export(words, path, reading.checksum));
  snapshot.vocabulary = std::move(words.vocabulary);
  if (const TensorInfo* output = file.find("output"); output != nullptr && output->shape == input->shape) {
    STREAMVEC_ASSIGN_OR_RETURN(snapshot.output,
                               read_checked(file, *output, snapshot.vocabulary.size(), output_reading));
  }
  const auto model = file.metadata().find("model");
  if (model != file.metadata().end()) snapshot.model = model->second;
  // Of models that have more than two tables only the vectors are in such a file.
  if (snapshot.model != "cbow") snapshot.model = "sgns";
  return snapshot;
}

Result<Snapshot> import_projector(const std::string& tensors_path) {
  const std::string metadata_path = without_ending(tensors_path, "tensors.tsv") + "metadata.tsv";
  STREAMVEC_ASSIGN_OR_RETURN(InputStream tensors, InputStream::open(tensors_path));
  STREAMVEC_ASSIGN_OR_RETURN(InputStream metadata, InputStream::open(metadata_path));
  return read_projector(tensors, metadata);
}

// A row of text has nothing but numbers between its word and its end; float32 bytes look otherwise at once.
bool looks_like_text_row(std::string_view rest, int64_t dim) {
  const size_t word_end = rest.find(' ');
  if (word_end == rest.npos) return true;
  std::string_view values = rest.substr(word_end);
  values =
      values.substr(0, std::min<size_t>(static_cast<size_t>(4 * std::min<int64_t>(dim, 1 << 20)), values.find('\n')));
  return values.find_first_not_of(" \t\r0123456789+-.eEnaifNAIFty") == values.npos;
}

bool looks_like_safetensors(std::string_view head, int64_t size) {
  uint64_t length = 0;
  if (head.size() < 9 || head[8] != '{') return false;
  std::memcpy(&length, head.data(), sizeof length);
  return length <= static_cast<uint64_t>(size);
}

// A byte order mark, as editors on Windows begin text with.
Status skip_mark(InputStream& input) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view head, input.peek(static_cast<int64_t>(kMark.size())));
  if (head == kMark) input.skip(static_cast<int64_t>(kMark.size()));
  return {};
}

Result<Snapshot> import_stream(InputStream& input) {
  STREAMVEC_RETURN_IF_ERROR(skip_mark(input));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view head, input.peek(128 << 10));
  if (head.empty()) return error(Code::kInvalidArgument, input.path(), " is empty; check that it was written");
  if (looks_like_fasttext_bin(head))
    return error(Code::kInvalidArgument, input.path(), " is a compressed model of fastText; unpack it first");
  if (head.starts_with("PK\x03\x04"))
    return error(Code::kInvalidArgument, input.path(), " is a zip archive; unpack it first");
  const size_t line_end = std::min(head.find('\n'), head.size());
  const std::string_view line = head.substr(0, line_end);
  const auto header = parse_word2vec_header(line.ends_with('\r') ? line.substr(0, line_end - 1) : line);
  if (header && looks_like_text_row(head.substr(std::min(line_end + 1, head.size())), header->dim))
    return read_word2vec_text(input);
  if (header) return read_word2vec_binary(input);
  if (line.find('\0') != line.npos)
    return error(Code::kInvalidArgument, input.path(),
                 " is a binary file of no known format; those known are word2vec, ",
                 "word2vec-bin, glove, npy, safetensors, projector and fasttext-bin");
  return read_glove(input);
}

}  // namespace

Result<VectorFormat> parse_format(std::string_view name) {
  std::string names;
  for (const FormatName& known : kFormatNames) {
    if (name == known.name) return known.format;
    names += names.empty() ? known.name : std::string(", ") + known.name;
  }
  return error(Code::kInvalidArgument, "there is no format '", name, "'; choose one of ", names);
}

std::string_view format_name(VectorFormat format) {
  for (const FormatName& known : kFormatNames)
    if (format == known.format) return known.name;
  return "";
}

Status export_vectors(const Snapshot& snapshot, VectorFormat format, const std::string& out_path) {
  STREAMVEC_CHECK_EQ(snapshot.input.rows(), static_cast<int64_t>(snapshot.vocabulary.size()));
  STREAMVEC_RETURN_IF_ERROR(check_finite(snapshot));
  STREAMVEC_RETURN_IF_ERROR(check_directory_of(out_path));
  switch (format) {
    case VectorFormat::kWord2vecText:
      return export_file(out_path, [&](FileWriter& file) { return write_word2vec_text(snapshot, file); });
    case VectorFormat::kWord2vecBinary:
      return export_file(out_path, [&](FileWriter& file) { return write_word2vec_binary(snapshot, file); });
    case VectorFormat::kGlove:
      return export_file(out_path, [&](FileWriter& file) { return write_glove(snapshot, file); });
    case VectorFormat::kNpy:
      return export_npy(snapshot, out_path);
    case VectorFormat::kSafetensors:
      return export_safetensors(snapshot, out_path);
    case VectorFormat::kProjector:
      return export_projector(snapshot, out_path);
    case VectorFormat::kFasttextBin:
      return export_file(out_path, [&](FileWriter& file) { return write_fasttext_bin(snapshot, file); });
  }
  return error(Code::kInternal, "a format that is not in the list");
}

Result<Snapshot> import_vectors(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (file_exists(path + "/tensors.tsv")) return import_projector(path + "/tensors.tsv");
    return error(Code::kInvalidArgument, path,
                 " is a directory without tensors.tsv; give the path of a file of vectors");
  }
  if (path.ends_with("tensors.tsv") && file_exists(without_ending(path, "tensors.tsv") + "metadata.tsv"))
    return import_projector(path);
  STREAMVEC_ASSIGN_OR_RETURN(InputStream input, InputStream::open(path));
  if (!input.compressed()) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view head, input.peek(16));
    if (head.starts_with("\x93NUMPY") || (path.ends_with(".npy") && !head.empty())) return import_npy(path);
    if (looks_like_fasttext_bin(head)) return read_fasttext_bin(path);
    if (looks_like_safetensors(head, input.size()) || (path.ends_with(".safetensors") && !head.empty()))
      return import_safetensors(path);
  }
  return import_stream(input);
}

}  // namespace streamvec
