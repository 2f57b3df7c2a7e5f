// The characters of a vocabulary's words, for models that spell them: in the order in which they were first met, which
// nodes that share the vocabulary have to agree on, also where they hear of a word only when its slot has another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace streamvec {

struct MetCharacter {
  char32_t character = 0;
  uint64_t born = 0;  // with the word that was admitted then (StreamVocabulary); 0: before all changes
};

class CharacterList {
 public:
  // REQUIRES: `born` never falls. False: it is there already.
  bool add(char32_t character, uint64_t born) {
    if (!known_.insert(character).second) return false;
    all_.push_back({character, born});
    return true;
  }
  std::span<const MetCharacter> all() const { return all_; }
  std::span<const MetCharacter> since(uint64_t stamp) const {
    const auto first = std::upper_bound(all_.begin(), all_.end(), stamp,
                                        [](uint64_t than, const MetCharacter& each) { return than < each.born; });
    return std::span(all_).subspan(static_cast<size_t>(first - all_.begin()));
  }

 private:
  std::vector<MetCharacter> all_;
  std::unordered_set<char32_t> known_;
};

}  // namespace streamvec
