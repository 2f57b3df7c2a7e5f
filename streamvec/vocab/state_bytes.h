// Numbers and strings as bytes, and back with every length checked: the pieces of a saved state. Little-endian.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "streamvec/core/status.h"

namespace streamvec {

static_assert(std::endian::native == std::endian::little, "states are written as they lie in memory");

class StateWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_varint(uint64_t value) {  // 7 bits a byte, the lowest first
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void put_text(std::string_view text) {  // at most 2^16 - 1 bytes
    put(static_cast<uint16_t>(text.size()));
    bytes_.append(text);
  }
  template <typename T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once something could not be read, ok() is false and everything read after it is 0 or empty.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value = 0;
    if (const char* from = take(sizeof value); from != nullptr) std::memcpy(&value, from, sizeof value);
    return value;
  }
  uint64_t get_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = get<uint8_t>();
      value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view get_text() {
    const size_t size = get<uint16_t>();
    const char* from = take(size);
    return from == nullptr ? std::string_view() : std::string_view(from, size);
  }
  template <typename T>
  void get_all(std::span<T> values) {
    static_assert(std::is_arithmetic_v<T>);
    if (const char* from = take(values.size_bytes()); from != nullptr && !values.empty())
      std::memcpy(values.data(), from, values.size_bytes());
  }
  // How many items follow. When fewer than item_bytes_min * count bytes are left, nothing could be read.
  int64_t get_count(int64_t item_bytes_min) {
    const auto count = get<uint64_t>();
    if (count > (bytes_.size() - at_) / static_cast<size_t>(item_bytes_min)) failed_ = true;
    return failed_ ? 0 : static_cast<int64_t>(count);
  }
  void fail() { failed_ = true; }
  bool ok() const { return !failed_; }
  bool at_end() const { return at_ == bytes_.size(); }
  size_t offset() const { return at_; }

 private:
  const char* take(size_t size) {
    if (failed_ || size > bytes_.size() - at_) {
      failed_ = true;
      return nullptr;
    }
    at_ += size;
    return bytes_.data() + at_ - size;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace streamvec
