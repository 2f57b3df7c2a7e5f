// Storage for words whose bytes differ from the text's: grows by blocks that never move, so that views stay good.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace streamvec {

// Views into it end with clear() or with the arena. Movable (views stay good), not copyable. Not thread-safe.
class TextArena {
 public:
  TextArena() = default;
  TextArena(TextArena&& other) noexcept { *this = std::move(other); }
  TextArena& operator=(TextArena&& other) noexcept {
    blocks_ = std::exchange(other.blocks_, {});
    block_ = std::exchange(other.block_, 0);
    used_ = std::exchange(other.used_, 0);
    return *this;
  }

  // Room for `bytes` bytes. Until the next call 8 bytes past them may be written as well: callers use 64-bit words.
  char* allocate(size_t bytes) {
    const size_t padded = (bytes + 7) / 8 * 8;
    while (block_ < blocks_.size() && used_ + padded > blocks_[block_].bytes) next_block();
    if (block_ == blocks_.size()) add_block(padded);
    char* memory = blocks_[block_].data.get() + used_;
    used_ += padded;
    return memory;
  }

  std::string_view copy(std::string_view word) {
    char* memory = allocate(word.size());
    std::memcpy(memory, word.data(), word.size());
    return {memory, word.size()};
  }

  // Forgets the words and keeps the memory for the next ones.
  void clear() { block_ = used_ = 0; }

 private:
  static constexpr size_t kBlockBytes = size_t{1} << 16;
  static constexpr size_t kPadding = 8;
  struct Block {
    std::unique_ptr<char[]> data;
    size_t bytes;  // without the padding
  };

  void next_block() {
    ++block_;
    used_ = 0;
  }
  void add_block(size_t bytes_min) {
    const size_t bytes = bytes_min > kBlockBytes ? bytes_min : kBlockBytes;
    blocks_.push_back({std::unique_ptr<char[]>(new char[bytes + kPadding]), bytes});
    used_ = 0;
  }

  std::vector<Block> blocks_;
  size_t block_ = 0;  // the one being filled; blocks_.size() when all are full
  size_t used_ = 0;   // bytes of it
};

}  // namespace streamvec
