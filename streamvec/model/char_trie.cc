#include "streamvec/model/char_trie.h"

#include <algorithm>
#include <bit>

#include "streamvec/core/random.h"

namespace streamvec {

void CharTrie::build(std::span<const std::span<const CharacterId>> words) {
  clear(words);
  for (size_t length = 0; !open_.empty(); ++length) {
    std::erase_if(open_, [&](int32_t word) { return words[static_cast<size_t>(word)].size() == length; });
    for (const int32_t word : open_) {
      int32_t& node = word_nodes_[static_cast<size_t>(word)];
      node = follow(node, character_of(words[static_cast<size_t>(word)][length]));
    }
    if (!open_.empty()) level_ends_.push_back(static_cast<int32_t>(met_.size()));
  }
  lay_out();
}

void CharTrie::clear(std::span<const std::span<const CharacterId>> words) {
  size_t total = 0;
  for (const auto& word : words) total += word.size();
  const size_t size = std::bit_ceil(2 * total + 2);
  if (table_.size() < size || ++round_ == 0) {
    table_.assign(std::max(size, table_.size()), Entry{0, 0, 0});
    round_ = 1;
  }
  for (const CharacterId id : alphabet_) alphabet_index_[id] = -1;
  alphabet_index_.resize(65'536, -1);
  alphabet_.clear();
  met_.assign(1, {-1, -1, true});
  level_ends_.assign(1, 1);
  word_nodes_.assign(words.size(), 0);
  open_.resize(words.size());
  for (size_t i = 0; i < words.size(); ++i) open_[i] = static_cast<int32_t>(i);
}

int32_t CharTrie::character_of(CharacterId id) {
  int32_t& index = alphabet_index_[id];
  if (index < 0) {
    index = static_cast<int32_t>(alphabet_.size());
    alphabet_.push_back(id);
  }
  return index;
}

int32_t CharTrie::follow(int32_t from, int32_t character) {
  const int64_t edge = int64_t{from} << 16 | character;
  const size_t mask = table_.size() - 1;
  size_t at = mix(static_cast<uint64_t>(edge)) & mask;
  for (; table_[at].round == round_; at = (at + 1) & mask)
    if (table_[at].edge == edge) return table_[at].met;
  table_[at] = {edge, static_cast<int32_t>(met_.size()), round_};
  met_[static_cast<size_t>(from)].inner = true;
  met_.push_back({from, character, false});
  return table_[at].met;
}

// Numbers the nodes anew: inner ones first. Among equals the order of meeting stays, which goes by levels.
void CharTrie::lay_out() {
  inner_ = static_cast<int32_t>(std::count_if(met_.begin(), met_.end(), [](const Met& node) { return node.inner; }));
  int32_t next_inner = 0, next_leaf = inner_;
  places_.resize(met_.size());
  parents_.resize(met_.size());
  characters_.resize(met_.size());
  levels_.clear();
  size_t at = 0;
  for (const int32_t end : level_ends_) {
    Level level{next_inner, 0, next_leaf, 0};
    for (; at < static_cast<size_t>(end); ++at) {
      const Met& node = met_[at];
      const int32_t place = places_[at] = node.inner ? next_inner++ : next_leaf++;
      parents_[static_cast<size_t>(place)] = node.parent < 0 ? -1 : places_[static_cast<size_t>(node.parent)];
      characters_[static_cast<size_t>(place)] = node.character;
    }
    level.inner_end = next_inner;
    level.leaf_end = next_leaf;
    levels_.push_back(level);
  }
  for (int32_t& node : word_nodes_) node = places_[static_cast<size_t>(node)];
}

}  // namespace streamvec
