#include "streamvec/train/checkpoint.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <set>
#include <thread>

#include "streamvec/core/disk_change.h"
#include "streamvec/core/json.h"
#include "streamvec/format/file_streambuf.h"
#include "streamvec/train/checkpoint_directory.h"
#include "streamvec/train/checkpoint_manifest.h"
#include "streamvec/train/model_state.h"
#include "streamvec/vocab/vocab_file.h"

namespace streamvec {
namespace {

using nlohmann::json;

constexpr int64_t kJsonBytesMax = int64_t{1} << 30;

// ---- saving: each function writes one file of the checkpoint and returns its sum

Result<FileSum> close_file(FileWriter& file) {
  STREAMVEC_RETURN_IF_ERROR(file.close());
  return FileSum{file.size(), file.checksum(), {}};
}

Result<FileSum> write_model(const std::string& path, const CheckpointContent& content) {
  std::vector<NamedMatrix> tensors = {{"input", content.input, content.input_change}};
  if (content.output.cols > 0) tensors.push_back({"output", content.output});
  tensors.insert(tensors.end(), content.optimizer.begin(), content.optimizer.end());
  STREAMVEC_ASSIGN_OR_RETURN(FileWriter file, FileWriter::create(path));
  STREAMVEC_ASSIGN_OR_RETURN(auto parts,
                             write_safetensors(file, {{"format", "streamvec"}, {"model", content.model}}, tensors));
  STREAMVEC_ASSIGN_OR_RETURN(FileSum sum, close_file(file));
  sum.parts = std::move(parts);
  return sum;
}

Result<FileSum> write_words(const std::string& path, const Vocabulary& vocabulary) {
  STREAMVEC_ASSIGN_OR_RETURN(FileWriter file, FileWriter::create(path));
  FileWriterBuf buffer(file);
  std::ostream out(&buffer);
  write_vocabulary(vocabulary, out);
  STREAMVEC_RETURN_IF_ERROR(buffer.status());
  return close_file(file);
}

Result<FileSum> write_text(const std::string& path, std::string_view text) {
  STREAMVEC_ASSIGN_OR_RETURN(FileWriter file, FileWriter::create(path));
  STREAMVEC_RETURN_IF_ERROR(file.write(text));
  return close_file(file);
}

Result<FileSum> write_extra(const std::string& path, const ExtraFile& extra) {
  STREAMVEC_ASSIGN_OR_RETURN(FileWriter file, FileWriter::create(path));
  STREAMVEC_RETURN_IF_ERROR(extra.write([&](std::string_view bytes) { return file.write(bytes); }));
  return close_file(file);
}

Status write_files(const std::string& directory, const CheckpointContent& content) {
  CheckpointManifest manifest{content.step, content.model, {}, content.state};
  STREAMVEC_ASSIGN_OR_RETURN(manifest.files[kModelFile], write_model(directory + "/" + kModelFile, content));
  STREAMVEC_ASSIGN_OR_RETURN(manifest.files[kVocabularyFile],
                             write_words(directory + "/" + kVocabularyFile, content.vocabulary));
  const std::string cursors = json_text(content.cursors, 2) + "\n";
  STREAMVEC_ASSIGN_OR_RETURN(manifest.files[kCursorsFile], write_text(directory + "/" + kCursorsFile, cursors));
  for (const ExtraFile& extra : content.extra) {
    STREAMVEC_ASSIGN_OR_RETURN(manifest.files[extra.name], write_extra(directory + "/" + extra.name, extra));
  }
  return write_text(directory + "/" + kStateFile, manifest.encode()).status();
}

void check_content(const CheckpointContent& content) {
  STREAMVEC_CHECK(content.step >= 0 && content.input.cols > 0);
  STREAMVEC_CHECK_EQ(content.input.rows, static_cast<int64_t>(content.vocabulary.size()));
  STREAMVEC_CHECK(content.output.cols == 0 ||
                  (content.output.rows == content.input.rows && content.output.cols == content.input.cols));
  std::set<std::string> names = {"", "input", "output"};
  for (const NamedMatrix& matrix : content.optimizer) STREAMVEC_CHECK(names.insert(matrix.name).second);
  for (const ExtraFile& extra : content.extra)
    STREAMVEC_CHECK(is_extra_file(extra.name) && names.insert(extra.name).second);
}

// Gives a checkpoint another name: its step and `ending`.
Status set_aside(const CheckpointPath& checkpoint, const std::string& ending) {
  const std::string aside = directory_of(checkpoint.path) + "/" + std::to_string(checkpoint.step) + ending;
  if (!ending.empty()) remove_tree(aside);
  return rename_path(checkpoint.path, aside);
}

// What `latest` says; "" when it cannot be read.
std::string read_latest(const std::string& dir) {
  const auto file = FileReader::open(dir + "/latest");
  const auto text = file.ok() ? file->read_all(32) : Result<std::string>(file.status());
  return text.ok() ? *text : "";
}

// All but the newest, the one before it and the one that `latest` names: saves may have ended before they wrote it.
Status remove_old(const std::string& dir) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto found, list_checkpoints(dir));
  const std::string named = read_latest(dir);
  for (size_t i = 2; i < found.size(); ++i)
    if (std::to_string(found[i].step) + "\n" != named) remove_checkpoint(found[i].path);
  return {};
}

// ---- loading

// Damage is passed over in favour of an older checkpoint; what may pass by itself (no permission, no memory, too many
// files) is not, for going back would lose work.
bool is_damage(const Status& status) {
  return status.code() == Code::kDataLoss || status.code() == Code::kNotFound ||
         status.code() == Code::kInvalidArgument;
}

Status check_size(const std::string& path, int64_t size, int64_t wanted) {
  if (size < wanted)
    return error(Code::kDataLoss, path, " ends at byte ", size, ", ", wanted - size, " bytes early; it was cut short");
  if (size > wanted)
    return error(Code::kDataLoss, path, ": byte ", wanted, ": ", size - wanted, " bytes follow the end");
  return {};
}

Status check_sum(const std::string& path, int64_t offset, int64_t bytes, uint64_t sum, uint64_t wanted) {
  if (sum == wanted) return {};
  return error(Code::kDataLoss, path, ": bytes ", offset, " to ", offset + bytes,
               " do not match their sum; the file was damaged");
}

// A file of a checkpoint together with what the manifest says of it.
struct CheckpointFile {
  std::string path;
  FileSum sum;
};

Result<CheckpointFile> find_file(const std::string& directory, const CheckpointManifest& manifest, const char* name) {
  const auto found = manifest.files.find(name);
  if (found == manifest.files.end()) return error(Code::kDataLoss, directory, "/", kStateFile, " knows no ", name);
  return CheckpointFile{directory + "/" + name, found->second};
}

Result<FileReader> open_checked(const CheckpointFile& file) {
  STREAMVEC_ASSIGN_OR_RETURN(FileReader reader, FileReader::open(file.path));
  STREAMVEC_RETURN_IF_ERROR(check_size(file.path, reader.size(), file.sum.bytes));
  return reader;
}

Result<CheckpointManifest> read_manifest(const CheckpointPath& checkpoint) {
  const std::string path = checkpoint.path + "/" + kStateFile;
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  if (file.size() > kJsonBytesMax) return check_size(path, file.size(), kJsonBytesMax);
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, file.read_all(kJsonBytesMax));
  STREAMVEC_ASSIGN_OR_RETURN(CheckpointManifest manifest, CheckpointManifest::decode(text, path));
  if (manifest.step != checkpoint.step)
    return error(Code::kDataLoss, path, " is of step ", manifest.step, "; its directory was renamed or mixed up");
  return manifest;
}

Result<Vocabulary> read_words(const CheckpointFile& file) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader reader, open_checked(file));
  FileReaderBuf buffer(reader);
  std::istream in(&buffer);
  auto vocabulary = read_vocabulary(in, file.path);
  STREAMVEC_RETURN_IF_ERROR(buffer.status());
  if (!vocabulary.ok()) return vocabulary;
  STREAMVEC_RETURN_IF_ERROR(check_sum(file.path, 0, file.sum.bytes, buffer.checksum(), file.sum.checksum));
  return vocabulary;
}

Result<std::string> read_checked(const CheckpointFile& file, int64_t bytes_max) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader reader, open_checked(file));
  STREAMVEC_ASSIGN_OR_RETURN(std::string bytes, reader.read_all(bytes_max));
  Checksum sum;
  sum.update(bytes);
  STREAMVEC_RETURN_IF_ERROR(check_sum(file.path, 0, file.sum.bytes, sum.value(), file.sum.checksum));
  return bytes;
}

Result<json> read_cursors(const CheckpointFile& file) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, read_checked(file, kJsonBytesMax));
  json cursors = parse_json(text);
  if (cursors.is_discarded()) return error(Code::kDataLoss, file.path, ": byte 0: this is not JSON");
  return cursors;
}

const FilePart* find_part(const FileSum& sum, std::string_view name) {
  for (const FilePart& part : sum.parts)
    if (part.name == name) return &part;
  return nullptr;
}

Result<Matrix> read_tensor(const SafetensorsReader& reader, const TensorInfo& tensor, const CheckpointFile& file,
                           int64_t rows_max, std::vector<std::string>& notes) {
  TableReading reading;
  STREAMVEC_ASSIGN_OR_RETURN(Matrix table, reader.read(tensor, rows_max, reading));
  const FilePart* part = find_part(file.sum, tensor.name);
  if (part == nullptr || part->bytes != tensor.bytes)
    return error(Code::kDataLoss, file.path, ": byte ", tensor.offset, ": no sum is known of tensor ", tensor.name);
  STREAMVEC_RETURN_IF_ERROR(check_sum(file.path, tensor.offset, tensor.bytes, reading.checksum, part->checksum));
  if (reading.not_finite > 0)
    notes.push_back(error(Code::kOk, file.path, ": byte ", reading.not_finite_offset, ": the first of ",
                          reading.not_finite, " values of ", tensor.name, " that are not finite")
                        .message());
  return table;
}

// Which tables and files of a checkpoint are read: all, or what queries need (the word vectors, and what makes vectors
// of spellings).
using Wanted = std::function<bool(std::string_view name)>;

Wanted wanted_parts(bool with_optimizer, const std::string& model) {
  if (with_optimizer) return [](std::string_view) { return true; };
  return [state = std::shared_ptr<const ModelState>(make_model_state(model))](std::string_view name) {
    return name == "input" || name == "output" || state->is_for_queries(name);
  };
}

// The tables of `loaded`, whose vocabulary is there already.
Status read_tables(const CheckpointFile& file, const Wanted& wanted, int64_t rows_max, Checkpoint& loaded) {
  STREAMVEC_RETURN_IF_ERROR(open_checked(file).status());
  STREAMVEC_ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::open(file.path));
  STREAMVEC_ASSIGN_OR_RETURN(const uint64_t sum, reader.header_checksum());
  const FilePart* header = find_part(file.sum, "");
  STREAMVEC_RETURN_IF_ERROR(check_sum(file.path, 0, reader.header_bytes(), sum, header ? header->checksum : ~sum));
  for (const TensorInfo& tensor : reader.tensors()) {
    if (!wanted(tensor.name)) continue;
    Matrix& table = tensor.name == "input"    ? loaded.input
                    : tensor.name == "output" ? loaded.output
                                              : loaded.optimizer[tensor.name];
    const bool by_slot = !tensor.shape.empty() && tensor.shape[0] == loaded.vocabulary.size();
    STREAMVEC_ASSIGN_OR_RETURN(table, read_tensor(reader, tensor, file, by_slot ? rows_max : 0, loaded.notes));
  }
  const int64_t words = loaded.vocabulary.size();
  const bool output_fits =
      loaded.output.cols() == 0 || (loaded.output.rows() == words && loaded.output.cols() == loaded.input.cols());
  if (loaded.input.cols() == 0 || loaded.input.rows() != words || !output_fits)
    return error(Code::kDataLoss, file.path, " holds ", loaded.input.rows(), " and ", loaded.output.rows(),
                 " rows for ", words, " words; files of different checkpoints were mixed up");
  return {};
}

Result<Checkpoint> load_one(const CheckpointPath& checkpoint, bool with_optimizer, int64_t rows_max) {
  Checkpoint loaded;
  STREAMVEC_ASSIGN_OR_RETURN(CheckpointManifest manifest, read_manifest(checkpoint));
  STREAMVEC_ASSIGN_OR_RETURN(const CheckpointFile words, find_file(checkpoint.path, manifest, kVocabularyFile));
  STREAMVEC_ASSIGN_OR_RETURN(const CheckpointFile cursors, find_file(checkpoint.path, manifest, kCursorsFile));
  STREAMVEC_ASSIGN_OR_RETURN(const CheckpointFile model, find_file(checkpoint.path, manifest, kModelFile));
  STREAMVEC_ASSIGN_OR_RETURN(loaded.vocabulary, read_words(words));
  STREAMVEC_ASSIGN_OR_RETURN(loaded.cursors, read_cursors(cursors));
  const Wanted wanted = wanted_parts(with_optimizer, manifest.model);
  STREAMVEC_RETURN_IF_ERROR(read_tables(model, wanted, rows_max, loaded));
  for (const auto& [name, sum] : manifest.files) {
    if (!is_extra_file(name) || !wanted(name)) continue;
    STREAMVEC_ASSIGN_OR_RETURN(loaded.extra[name], read_checked({checkpoint.path + "/" + name, sum}, sum.bytes));
  }
  loaded.step = manifest.step;
  loaded.model = std::move(manifest.model);
  loaded.state = std::move(manifest.state);
  return loaded;
}

// Reads every byte and keeps none.
Status verify_one(const CheckpointPath& checkpoint) {
  STREAMVEC_ASSIGN_OR_RETURN(const CheckpointManifest manifest, read_manifest(checkpoint));
  for (const char* name : {kVocabularyFile, kCursorsFile, kModelFile})
    STREAMVEC_RETURN_IF_ERROR(find_file(checkpoint.path, manifest, name).status());
  for (const auto& [name, its_sum] : manifest.files) {
    const CheckpointFile file{checkpoint.path + "/" + name, its_sum};
    STREAMVEC_ASSIGN_OR_RETURN(const FileReader reader, open_checked(file));
    STREAMVEC_ASSIGN_OR_RETURN(const uint64_t sum, reader.checksum(0, reader.size()));
    STREAMVEC_RETURN_IF_ERROR(check_sum(file.path, 0, reader.size(), sum, file.sum.checksum));
  }
  return {};
}

Result<std::vector<CheckpointPath>> list_for_loading(const std::string& dir) {
  // A directory is not read in one instant: while a writer renames, a list may miss what was there all the time. Where
  // there is a `latest`, something is.
  std::error_code ignored;
  for (int attempts_left = 100; attempts_left > 0; --attempts_left) {
    auto found = list_checkpoints(dir);
    if (found.ok() ? !found->empty() : found.status().code() != Code::kNotFound) return found;
    if (!std::filesystem::exists(dir + "/latest", ignored)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error(Code::kNotFound, dir, " holds no model; make one with: streamvec train SOURCE --out ", dir);
}

Result<Checkpoint> load_newest(const std::string& dir, bool with_optimizer, int64_t rows_max) {
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<CheckpointPath> candidates, list_for_loading(dir));
  std::vector<std::string> passed_over;
  int rounds_left = 100;
  for (size_t i = 0; i < candidates.size();) {
    auto loaded = load_one(candidates[i], with_optimizer, rows_max);
    if (loaded.ok()) {
      for (std::string& note : passed_over)
        note += "; went back to the checkpoint of step " + std::to_string(loaded->step);
      loaded->notes.insert(loaded->notes.begin(), passed_over.begin(), passed_over.end());
      return loaded;
    }
    if (!is_damage(loaded.status())) return loaded;
    // While we read, a trainer may save twice and remove what we were reading: then the list has changed. A save takes
    // as long as reading, so a few rounds are enough.
    STREAMVEC_ASSIGN_OR_RETURN(std::vector<CheckpointPath> now, list_for_loading(dir));
    if (now != candidates && rounds_left-- > 0) {
      candidates = std::move(now);
      passed_over.clear();
      i = 0;
      continue;
    }
    passed_over.push_back(loaded.status().message());
    ++i;
  }
  return error(Code::kDataLoss, "every checkpoint in ", dir, " is damaged; the newest: ", passed_over.front());
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::open(const std::string& dir, const std::string& job) {
  STREAMVEC_ASSIGN_OR_RETURN(FileHandle lock, lock_model_directory(dir, job));
  return CheckpointWriter(dir, std::move(lock));
}

// Sets damaged checkpoints aside down to the newest sound one, which must not be later than `step`, and finishes a
// replacement that was interrupted: afterwards each step has one directory.
Status CheckpointWriter::settle(int64_t step) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto found, list_checkpoints(dir_));
  // What others left may not have been synced. It is, before anything that it replaces goes.
  STREAMVEC_RETURN_IF_ERROR(sync_directory(dir_));
  bool sound = false;
  for (const CheckpointPath& checkpoint : found) {
    const Status status = sound ? Status() : verify_one(checkpoint);
    if (!status.ok() && !is_damage(status)) return status;
    if (status.ok() && checkpoint.step > step)
      return error(Code::kFailedPrecondition, dir_, " holds a model of step ", checkpoint.step, ", later than step ",
                   step, " that was to be saved; choose another directory");
    if (!status.ok())
      STREAMVEC_RETURN_IF_ERROR(set_aside(checkpoint, ".damaged"));
    else if (checkpoint.replaced && sound)
      remove_checkpoint(checkpoint.path);
    else if (checkpoint.replaced)
      STREAMVEC_RETURN_IF_ERROR(set_aside(checkpoint, ""));
    sound = sound || status.ok();
  }
  settled_ = true;
  return {};
}

// One that has lost the directory finds there what it does not expect: why, is what to say then.
Status CheckpointWriter::save(const CheckpointContent& content) {
  STREAMVEC_RETURN_IF_ERROR(check_lock(dir_, lock_));
  Status written = write(content);
  if (written.ok()) return written;
  settled_ = false;  // what it has done may not last
  STREAMVEC_RETURN_IF_ERROR(check_lock(dir_, lock_));
  return written;
}

Status CheckpointWriter::write(const CheckpointContent& content) {
  check_content(content);
  if (!settled_) STREAMVEC_RETURN_IF_ERROR(settle(content.step));
  remove_leftovers(dir_);
  STREAMVEC_RETURN_IF_ERROR(remove_old(dir_));  // saves that ended before they came to it must not pile up
  const std::string path = dir_ + "/" + std::to_string(content.step), replaced = path + ".replaced";
  STREAMVEC_ASSIGN_OR_RETURN(DurableDirectory directory, DurableDirectory::create(path));
  STREAMVEC_RETURN_IF_ERROR(write_files(directory.partial_path(), content));
  STREAMVEC_RETURN_IF_ERROR(check_lock(dir_, lock_));  // this process may have been stopped for long meanwhile
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    remove_checkpoint(replaced);  // a crash may have left a part of it, which would be in the way
    STREAMVEC_RETURN_IF_ERROR(rename_path(path, replaced));
  }
  STREAMVEC_RETURN_IF_ERROR(directory.commit());
  // Before anything goes: what `latest` names is always there.
  STREAMVEC_RETURN_IF_ERROR(write_file_durably(dir_ + "/latest", std::to_string(content.step) + "\n"));
  remove_checkpoint(replaced);
  return remove_old(dir_);
}

Status save_checkpoint(const std::string& dir, const CheckpointContent& content) {
  STREAMVEC_ASSIGN_OR_RETURN(CheckpointWriter writer, CheckpointWriter::open(dir));
  return writer.save(content);
}

Result<Checkpoint> load_checkpoint(const std::string& dir, int64_t rows_max) {
  return load_newest(dir, true, rows_max);
}

Result<CheckpointCursors> load_cursors(const std::string& dir) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto checkpoints, list_checkpoints(dir));
  if (checkpoints.empty()) return error(Code::kNotFound, dir, " holds no model");
  const auto read = [](const CheckpointPath& checkpoint) -> Result<nlohmann::json> {
    STREAMVEC_ASSIGN_OR_RETURN(const CheckpointManifest manifest, read_manifest(checkpoint));
    STREAMVEC_ASSIGN_OR_RETURN(const CheckpointFile file, find_file(checkpoint.path, manifest, kCursorsFile));
    return read_cursors(file);
  };
  CheckpointCursors found{checkpoints.front().step, {}};
  for (const CheckpointPath& checkpoint : checkpoints)
    if (Result<nlohmann::json> cursors = read(checkpoint); cursors.ok()) {
      found.cursors = std::move(*cursors);
      break;
    }
  return found;
}

Result<Snapshot> load_snapshot(const std::string& dir, std::vector<std::string>* notes) {
  STREAMVEC_ASSIGN_OR_RETURN(Checkpoint loaded, load_newest(dir, false, 0));
  if (notes != nullptr) *notes = std::move(loaded.notes);
  Snapshot snapshot;
  STREAMVEC_ASSIGN_OR_RETURN(
      snapshot.generator, make_model_state(loaded.model)->generator(loaded, dir + "/" + std::to_string(loaded.step)));
  snapshot.model = std::move(loaded.model);
  snapshot.step = loaded.step;
  snapshot.vocabulary = std::move(loaded.vocabulary);
  snapshot.input = std::move(loaded.input);
  snapshot.output = std::move(loaded.output);
  return snapshot;
}

}  // namespace streamvec
