// A bit stream of gaps between chosen places, each with a sign: Rice codes (Rice, Plaunt 1971), which suit gaps of
// places chosen at random. In front: threshold (float), count (u32), shift (u8).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace streamvec {

class RiceWriter {
 public:
  explicit RiceWriter(std::string& out) : out_(out) {}

  // The shift whose codes are shortest when `chosen` of `places` are, at random: about log2 of the mean gap * ln 2.
  static int best_shift(int64_t places, int64_t chosen) {
    if (chosen <= 0) return 0;
    const auto gap = static_cast<uint64_t>(0.69 * static_cast<double>(places) / static_cast<double>(chosen));
    return gap == 0 ? 0 : static_cast<int>(std::bit_width(gap)) - 1;
  }

  void header(float threshold, int64_t count, int shift) {
    shift_ = shift;
    char bytes[9];
    const auto stored = static_cast<uint32_t>(count);
    std::memcpy(bytes, &threshold, 4);
    std::memcpy(bytes + 4, &stored, 4);
    bytes[8] = static_cast<char>(shift);
    out_.append(bytes, sizeof(bytes));
  }
  void gap(uint64_t gap, bool negative) {
    for (uint64_t ones = gap >> shift_; ones > 0; --ones) put(1, 1);
    put(0, 1);
    put(gap & ((uint64_t{1} << shift_) - 1), shift_);
    put(negative ? 1 : 0, 1);
  }
  void finish() {
    if (used_ > 0) out_.push_back(static_cast<char>(held_));
    held_ = 0, used_ = 0;
  }

 private:
  void put(uint64_t bits, int count) {
    for (; count > 0; --count, bits >>= 1) {
      held_ = static_cast<uint8_t>(held_ | (bits & 1) << used_);
      if (++used_ == 8) finish();
    }
  }

  std::string& out_;
  int shift_ = 0, used_ = 0;
  uint8_t held_ = 0;
};

class RiceReader {
 public:
  explicit RiceReader(std::string_view bytes) : bytes_(bytes) {}

  bool header() {
    if (bytes_.size() < 9) return false;
    uint32_t count = 0;
    std::memcpy(&threshold_, bytes_.data(), 4);
    std::memcpy(&count, bytes_.data() + 4, 4);
    count_ = count;
    shift_ = static_cast<uint8_t>(bytes_[8]);
    at_ = 9 * 8;
    return shift_ < 40 && threshold_ >= 0 && threshold_ < 1e30f && left() >= static_cast<uint64_t>(count_) * 2;
  }
  float threshold() const { return threshold_; }
  int64_t count() const { return count_; }
  bool gap(uint64_t& gap, bool& negative) {
    uint64_t ones = 0, low = 0, sign = 0;
    for (;; ++ones) {
      uint64_t bit = 0;
      if (!take(1, bit)) return false;
      if (bit == 0) break;
    }
    if (!take(shift_, low) || !take(1, sign)) return false;
    gap = (ones << shift_) | low;
    negative = sign != 0;
    return true;
  }
  // Nothing follows but the rest of the last byte.
  bool at_end() const { return (at_ + 7) / 8 == bytes_.size(); }

 private:
  uint64_t left() const { return bytes_.size() * 8 - at_; }
  bool take(int count, uint64_t& bits) {
    if (left() < static_cast<uint64_t>(count)) return false;
    bits = 0;
    for (int i = 0; i < count; ++i, ++at_)
      bits |= uint64_t{(static_cast<uint8_t>(bytes_[at_ / 8]) >> (at_ % 8)) & 1u} << i;
    return true;
  }

  std::string_view bytes_;
  uint64_t at_ = 0;
  float threshold_ = 0;
  int64_t count_ = 0;
  int shift_ = 0;
};

}  // namespace streamvec
