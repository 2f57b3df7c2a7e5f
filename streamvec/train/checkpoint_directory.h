// The names in a model directory, the lock on it, and what leaves it. checkpoint.h is the part that others use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"

namespace streamvec {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kVocabularyFile = "vocab.tsv";
constexpr const char* kCursorsFile = "cursors.json";
constexpr const char* kStateFile = "state.json";
// Whether a name is one that a further file of a checkpoint may have: letters and "-", then ".bin".
bool is_extra_file(std::string_view name);

// One that may be loaded: DIR/<step>, or DIR/<step>.replaced while a checkpoint of the same step takes its place.
struct CheckpointPath {
  int64_t step = 0;
  bool replaced = false;
  std::string path;
  uint64_t identity = 0;  // of the directory: another number when the name was used again
  bool operator==(const CheckpointPath&) const = default;
};

// Newest first. kNotFound when `dir` is not there; empty when it holds none. Without the lock, what a writer renames
// meanwhile may be missing from the list.
Result<std::vector<CheckpointPath>> list_checkpoints(const std::string& dir);

// Makes `dir` if needed and takes its lock. kFailedPrecondition when another process has it, or when the directory
// holds something and no model. `job`: whose writers follow one another. One that has it for the same job loses it.
Result<FileHandle> lock_model_directory(const std::string& dir, const std::string& job = "");
// kAborted when another process has taken it over.
Status check_lock(const std::string& dir, const FileHandle& lock);

// Renames the checkpoint out of sight, then removes the files that belong to one; a file that somebody else put there
// keeps its directory. Errors are ignored: what is left is tried again after the next save.
void remove_checkpoint(const std::string& path);

// Removes what interrupted saves and removals left. REQUIRES: the lock is held.
void remove_leftovers(const std::string& dir);

}  // namespace streamvec
