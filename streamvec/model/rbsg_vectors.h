// What a trained RBSG knows beyond the vectors of its vocabulary: the encoder that makes one of any spelling.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/model/spelling.h"
#include "streamvec/model/trie_lstm.h"
#include "streamvec/model/word_generator.h"

namespace streamvec {

// How spellings become rows of the character table, and the encoders' shape: what has to be saved beside the tables.
struct RbsgIndex {
  EncoderShape shape;  // characters: those that are there
  CharacterTable::Options characters;
  bool fold_case = false;
  std::vector<char32_t> admitted;

  std::string encode() const;
  // kDataLoss, with `path` and a byte offset, for anything that encode() does not write.
  static Result<RbsgIndex> decode(std::string_view bytes, const std::string& path);
};
// The file of a checkpoint that has it, and what the names of its tables begin with.
constexpr const char* kRbsgFile = "rbsg.bin";
constexpr const char* kRbsgCentre = "rbsg.centre.";
constexpr const char* kRbsgContext = "rbsg.context.";

class RbsgVectors final : public WordGenerator {
 public:
  // kDataLoss when the encoder is not of the index's shape.
  static Result<std::shared_ptr<const RbsgVectors>> make(const RbsgIndex& index, EncoderParameters encoder);

  Status generate(std::string_view word, std::span<float> out) const override;
  bool folds_case() const override { return fold_case_; }

 private:
  RbsgVectors() = default;

  CharacterTable characters_;
  EncoderParameters encoder_;
  bool fold_case_ = false;
  std::shared_ptr<const PackedGemm> products_;
};

}  // namespace streamvec
