// The distinct beginnings of some words, as a trie laid out for matrix products: what a character model computes for a
// beginning it computes once, level by level.
//
// Nodes are beginnings, node 0 the empty one. Inner nodes (something follows) have the lower numbers, leaves the higher
// ones, both level by level; so the inner nodes of a level are neighbouring rows, and so are all inner nodes. Only they
// cost a row of a recurrent product: W h is the same for all characters that may follow h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streamvec/model/spelling.h"

namespace streamvec {

// Keeps its memory from one build to the next. Not thread-safe while it builds.
class CharTrie {
 public:
  // The nodes of one length, in two runs.
  struct Level {
    int32_t inner_begin, inner_end;
    int32_t leaf_begin, leaf_end;
  };

  // Replaces what was there, in time and memory linear in the characters of all words. Words may be empty or equal.
  void build(std::span<const std::span<const CharacterId>> words);

  int32_t words() const { return static_cast<int32_t>(word_nodes_.size()); }
  int32_t nodes() const { return static_cast<int32_t>(parents_.size()); }  // with the empty beginning: at least 1
  int32_t inner() const { return inner_; }                                 // with the empty beginning: at least 1
  int32_t levels() const { return static_cast<int32_t>(levels_.size()); }  // the longest word's length + 1
  const Level& level(int32_t length) const { return levels_[static_cast<size_t>(length)]; }

  // By node: the node without its last character (an inner node of the level before), and that character as an index
  // into alphabet(). Both -1 for node 0.
  std::span<const int32_t> parents() const { return parents_; }
  std::span<const int32_t> characters() const { return characters_; }
  // The characters of these words, each once.
  std::span<const CharacterId> alphabet() const { return alphabet_; }
  // By word: where it ends.
  std::span<const int32_t> word_nodes() const { return word_nodes_; }

 private:
  // Beginnings in the order they are met: level by level, and inner nodes among leaves.
  struct Met {
    int32_t parent;
    int32_t character;
    bool inner;
  };
  struct Entry {
    int64_t edge;
    int32_t met;
    uint32_t round;  // of another build when not round_: empty
  };
  void clear(std::span<const std::span<const CharacterId>> words);
  int32_t character_of(CharacterId id);
  int32_t follow(int32_t from, int32_t character);
  void lay_out();

  std::vector<Level> levels_;
  std::vector<int32_t> parents_, characters_, word_nodes_;
  std::vector<CharacterId> alphabet_;
  int32_t inner_ = 0;

  std::vector<Met> met_;
  std::vector<int32_t> level_ends_, places_, open_;
  std::vector<int32_t> alphabet_index_;
  std::vector<Entry> table_;  // edges to nodes, by open addressing, at most half full
  uint32_t round_ = 0;
};

}  // namespace streamvec
