// A model whose vectors have a part in common, for the tests of whatever seeks neighbours.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/model/snapshot.h"
#include "streamvec/model/word_generator.h"

namespace streamvec {

using OwnParts = std::map<std::string, std::vector<float>, std::less<>>;

// Makes the common part and a word's own, which is nothing for words that are not named.
class CommonPartVectors final : public WordGenerator {
 public:
  CommonPartVectors(std::vector<float> common, OwnParts own) : common_(std::move(common)), own_(std::move(own)) {}

  Status generate(std::string_view word, std::span<float> out) const override {
    std::copy(common_.begin(), common_.end(), out.begin());
    if (const auto own = own_.find(word); own != own_.end())
      for (size_t i = 0; i < out.size(); ++i) out[i] += own->second[i];
    return {};
  }
  std::span<const float> common_part() const override { return common_; }
  bool folds_case() const override { return false; }

 private:
  std::vector<float> common_;
  OwnParts own_;
};

// Adds the part to all rows; words that are not in the vocabulary have `own` beside it.
inline void add_common_part(Snapshot& snapshot, const std::vector<float>& common, OwnParts own = {}) {
  for (int64_t i = 0; i < snapshot.input.rows(); ++i)
    for (size_t j = 0; j < common.size(); ++j) snapshot.input.row(i)[j] += common[j];
  snapshot.generator = std::make_shared<CommonPartVectors>(common, std::move(own));
}

}  // namespace streamvec
