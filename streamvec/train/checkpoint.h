// A model directory: checkpoints that survive crashes, full disks and flipped bits.
//
//   DIR/<step>/model.safetensors   the tables: `input`, `output`, and the optimiser's under names of their own
//   DIR/<step>/vocab.tsv           the words, by slot
//   DIR/<step>/cursors.json        where each source stands
//   DIR/<step>/*.bin               what a stream goes on with (vocabulary with its sketch, replay, filters), and
//                                  what a model has of its own: subword.bin, hybrid.bin, rbsg.bin, glove.bin
//   DIR/<step>/state.json          everything else, and the XXH3 sums of all files
//   DIR/latest                     the newest step, for other programs; loading does not need it
//   DIR/.lock                      locked by the one process that writes here
//
// A checkpoint is written as DIR/<step>.partial, synced, and renamed: at every instant the newest complete one loads.
// The one before it is kept, in case the newest is damaged later. docs/FORMATS.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/format/safetensors.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// A further file of a checkpoint. Its name ends in ".bin".
struct ExtraFile {
  std::string name;
  // Hands its bytes to `sink`, in as many pieces as it likes, and returns the sink's first error.
  std::function<Status(const std::function<Status(std::string_view)>& sink)> write;
};

// What is saved. Tables and vocabulary are borrowed while save() runs. A row that is trained on meanwhile is saved as
// it is found; the vocabulary must not change.
struct CheckpointContent {
  int64_t step = 0;  // training chunks behind it: not negative; names the checkpoint
  std::string model = "sgns";
  const Vocabulary& vocabulary;
  MatrixView<const float> input;
  RowChange input_change = {};         // what is saved of each of its rows; none: the row
  MatrixView<const float> output;      // no rows: none is saved
  std::vector<NamedMatrix> optimizer;  // any shape; the names differ from each other and from input and output
  nlohmann::json state;                // text that is not UTF-8 is saved with U+FFFD in its place
  nlohmann::json cursors;
  std::vector<ExtraFile> extra = {};
};

// The right to write to a model directory, held until it is destroyed. Not thread-safe.
class CheckpointWriter {
 public:
  // Makes `dir` if it is not there and locks it. kFailedPrecondition: another process writes there, or it holds other
  // things and no model; nothing is changed then.
  // `job`: of a cluster whose leaders follow one another. A writer of the same job, which has lost the right to the
  // directory, be it alive or not, loses its lock; no other does.
  static Result<CheckpointWriter> open(const std::string& dir, const std::string& job = "");

  // Saves and syncs, then removes what is older than the checkpoint before this one, and what interrupted saves left.
  // On an error the checkpoints that were there are untouched and the disk space is given back. A checkpoint of the
  // same step is replaced; kFailedPrecondition when the directory holds a sound one of a later step. The first save
  // reads what it finds there: damaged ones are renamed to `<step>.damaged`, so that they do not count as the one
  // before. kAborted when another process has taken the directory over.
  Status save(const CheckpointContent& content);

 private:
  CheckpointWriter(std::string dir, FileHandle lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  Status settle(int64_t step);
  Status write(const CheckpointContent& content);

  std::string dir_;
  FileHandle lock_;
  bool settled_ = false;
};

// Opens, saves once, and lets go.
Status save_checkpoint(const std::string& dir, const CheckpointContent& content);

struct Checkpoint {
  int64_t step = 0;
  std::string model;
  Vocabulary vocabulary;
  Matrix input;
  Matrix output;  // no rows when there was none
  std::map<std::string, Matrix> optimizer;
  nlohmann::json state;
  nlohmann::json cursors;
  std::map<std::string, std::string> extra;  // content of the further files, by name
  std::vector<std::string> notes;  // what the user should hear: checkpoints passed over (file, offset), odd values
};

// The newest sound checkpoint, every byte of it checked against its sum. When the newest is damaged, cut short or
// incomplete, the one before is taken and `notes` says so. Tables have room for rows_max rows (0: no more than there
// are). kNotFound: no checkpoint there. kDataLoss: all are damaged. Errors that pass (no permission, no memory) are
// returned, not passed over. Needs no lock; another process may go on saving.
Result<Checkpoint> load_checkpoint(const std::string& dir, int64_t rows_max = 0);

// The same for queries, which have a generator where the model makes vectors of spellings: leaves the optimiser's
// tables and what only training needs on the disk, unread and unchecked. `notes` may be nullptr.
Result<Snapshot> load_snapshot(const std::string& dir, std::vector<std::string>* notes = nullptr);

// Where the sources stood at the newest one that says so; the rest is left unread and unchecked. kNotFound: no
// checkpoint there.
struct CheckpointCursors {
  int64_t step = 0;  // the newest, whatever it says
  nlohmann::json cursors;
};
Result<CheckpointCursors> load_cursors(const std::string& dir);

}  // namespace streamvec
