// state.json: what a checkpoint consists of, with the sums that tell whether it is all there.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/format/safetensors.h"

namespace streamvec {

struct FileSum {
  int64_t bytes = 0;
  uint64_t checksum = 0;
  std::vector<FilePart> parts;  // of model.safetensors: sums of its header (named "") and of each tensor
};

struct CheckpointManifest {
  int64_t step = 0;
  std::string model;
  std::map<std::string, FileSum> files;  // by name, state.json itself left out
  nlohmann::json state;

  // The text of state.json. Its last member is the sum of every byte before that sum's digits.
  std::string encode() const;
  // kDataLoss, with `path` and a byte offset, when any byte was changed, lost or added; kFailedPrecondition when a
  // later version of the format wrote it.
  static Result<CheckpointManifest> decode(std::string_view text, const std::string& path);
};

}  // namespace streamvec
