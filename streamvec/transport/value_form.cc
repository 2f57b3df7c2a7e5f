#include "streamvec/transport/value_form.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "streamvec/core/status.h"
#include "streamvec/kernel/bf16_values.h"
#include "streamvec/kernel/row_codec.h"

namespace streamvec {
namespace {

class WholeForm final : public ValueForm {
 public:
  size_t bytes(size_t, size_t count) const override { return count * sizeof(float); }
  void encode(size_t, std::span<const float> values, char* bytes) override {
    std::memcpy(bytes, values.data(), values.size_bytes());
  }
  void decode(size_t, const char* bytes, std::span<float> values) const override {
    std::memcpy(values.data(), bytes, values.size_bytes());
  }
  void add(size_t, std::span<const float> values, float divisor, char* bytes) override {
    for (size_t i = 0; i < values.size(); ++i) {
      float sum = 0;
      std::memcpy(&sum, bytes + i * sizeof sum, sizeof sum);
      sum = (sum + values[i]) / divisor;
      std::memcpy(bytes + i * sizeof sum, &sum, sizeof sum);
    }
  }
};

class Bf16Form final : public ValueForm {
 public:
  size_t bytes(size_t, size_t count) const override { return count * sizeof(uint16_t); }
  void encode(size_t, std::span<const float> values, char* bytes) override {
    bf16_encode(values.data(), std::ssize(values), reinterpret_cast<uint16_t*>(bytes));
  }
  void decode(size_t, const char* bytes, std::span<float> values) const override {
    bf16_decode(reinterpret_cast<const uint16_t*>(bytes), std::ssize(values), values.data());
  }
  void add(size_t, std::span<const float> values, float divisor, char* bytes) override {
    bf16_add(values.data(), divisor, std::ssize(values), reinterpret_cast<uint16_t*>(bytes));
  }
};

constexpr size_t kBlock = 256, kGroup = 16;
static_assert(ValueForm::kUnit % kBlock == 0);

size_t filled(size_t count) {
  return (count + kGroup - 1) / kGroup * kGroup;
}

// For blocks that do not fill the kernels' groups of 16.
struct Block {
  float values[kBlock] = {};
};

// The numbers of a group of 16, as they travel.
struct FourBits {
  using Number = uint8_t;
  static constexpr size_t kGroupBytes = kGroup / 2;
  static constexpr auto decode = fourbit_decode;
  static constexpr auto pass_on = fourbit_pass_on;
};

struct EightBits {
  using Number = int8_t;
  static constexpr size_t kGroupBytes = kGroup;
  static constexpr auto decode = eightbit_decode;
  static constexpr auto pass_on = eightbit_pass_on;
};

template <typename Bits>
class FewBitForm final : public ValueForm {
 public:
  FewBitForm(size_t whole_from, std::span<float> left_out) : whole_from_(whole_from), left_out_(left_out) {
    STREAMVEC_CHECK(whole_from <= left_out.size());
  }

  size_t bytes(size_t at, size_t count) const override {
    size_t sum = 0;
    for_each_block(at, count, [&](size_t, size_t some, bool whole) { sum += block_bytes(some, whole); });
    return sum;
  }

  void encode(size_t at, std::span<const float> values, char* bytes) override {
    for_each_block(at, values.size(), [&](size_t first, size_t count, bool whole) {
      const std::span<const float> some = values.subspan(first, count);
      whole ? whole_.encode(0, some, bytes) : pass_on(at + first, some, false, 1, bytes);
      bytes += block_bytes(count, whole);
    });
  }

  void decode(size_t at, const char* bytes, std::span<float> values) const override {
    for_each_block(at, values.size(), [&](size_t first, size_t count, bool whole) {
      const std::span<float> some = values.subspan(first, count);
      whole ? whole_.decode(0, bytes, some) : decode_block(bytes, some);
      bytes += block_bytes(count, whole);
    });
  }

  void add(size_t at, std::span<const float> values, float divisor, char* bytes) override {
    for_each_block(at, values.size(), [&](size_t first, size_t count, bool whole) {
      const std::span<const float> some = values.subspan(first, count);
      whole ? whole_.add(0, some, divisor, bytes) : pass_on(at + first, some, true, 1 / divisor, bytes);
      bytes += block_bytes(count, whole);
    });
  }

 private:
  // Calls use(its first value, counted from `at`, how many it has, whether they travel whole).
  template <typename Use>
  void for_each_block(size_t at, size_t count, const Use& use) const {
    for (size_t first = 0; first < count;) {
      const bool whole = at + first >= whole_from_;
      const size_t left = whole ? count - first : std::min(count - first, whole_from_ - at - first);
      const size_t some = whole ? left : std::min(left, kBlock);
      use(first, some, whole);
      first += some;
    }
  }

  // A step, and its numbers; of those that are no multiple of 16 the last group is filled up.
  static size_t block_bytes(size_t count, bool whole) {
    return whole ? count * sizeof(float) : sizeof(float) + filled(count) / kGroup * Bits::kGroupBytes;
  }

  static void decode_block(const char* bytes, std::span<float> values) {
    float step = 0;
    std::memcpy(&step, bytes, sizeof step);
    const auto* numbers = reinterpret_cast<const typename Bits::Number*>(bytes + sizeof step);
    if (values.size() % kGroup == 0)
      return Bits::decode(numbers, step, static_cast<int32_t>(values.size()), values.data());
    Block block;
    Bits::decode(numbers, step, static_cast<int32_t>(filled(values.size())), block.values);
    std::copy_n(block.values, values.size(), values.begin());
  }

  void pass_on(size_t at, std::span<const float> values, bool came, float scale, char* bytes) {
    const std::span<float> left = left_out_.subspan(at, values.size());
    float came_step = 0;
    std::memcpy(&came_step, bytes, sizeof came_step);
    auto* numbers = reinterpret_cast<typename Bits::Number*>(bytes + sizeof came_step);
    const auto step_of = [&](const float* from, size_t count, float* rest) {
      return Bits::pass_on(from, came ? numbers : nullptr, came_step, scale, static_cast<int32_t>(count), rest,
                           numbers);
    };
    float step = 0;
    if (values.size() % kGroup == 0) {
      step = step_of(values.data(), values.size(), left.data());
    } else {
      Block padded, rest;
      std::copy(values.begin(), values.end(), padded.values);
      std::copy(left.begin(), left.end(), rest.values);
      step = step_of(padded.values, filled(values.size()), rest.values);
      std::copy_n(rest.values, left.size(), left.begin());
    }
    std::memcpy(bytes, &step, sizeof step);
    if (!std::isfinite(step)) std::fill(left.begin(), left.end(), 0.0f);
  }

  const size_t whole_from_;
  const std::span<float> left_out_;
  WholeForm whole_;
};

}  // namespace

std::unique_ptr<ValueForm> whole_form() {
  return std::make_unique<WholeForm>();
}

std::unique_ptr<ValueForm> bf16_form() {
  return std::make_unique<Bf16Form>();
}

std::unique_ptr<ValueForm> fourbit_form(size_t whole_from, std::span<float> left_out) {
  return std::make_unique<FewBitForm<FourBits>>(whole_from, left_out);
}

std::unique_ptr<ValueForm> eightbit_form(size_t whole_from, std::span<float> left_out) {
  return std::make_unique<FewBitForm<EightBits>>(whole_from, left_out);
}

}  // namespace streamvec
