#include "streamvec/sync/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "streamvec/kernel/row_ops.h"
#include "streamvec/sync/rice.h"

namespace streamvec {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian");

constexpr std::string_view kNames[] = {"fp32", "fp16", "onebit", "strom", "fourbit"};
constexpr int64_t kShortRow = 128;  // values; by trial

Status wrong_size(std::string_view name, size_t bytes, int64_t rows, int64_t dim) {
  return error(Code::kInvalidArgument, "a payload of ", bytes, " bytes is not ", rows, " ", name, " rows of ", dim,
               " values; the sender runs another version or has another --dim");
}

class Fp32Codec final : public RowCodec {
 public:
  CodecKind kind() const override { return CodecKind::kFp32; }
  size_t row_bytes(int64_t dim) const override { return static_cast<size_t>(dim) * sizeof(float); }
  void encode_row(float* row, int32_t dim, char* out) const override { std::memcpy(out, row, row_bytes(dim)); }
  void decode_row(const char* in, int32_t dim, float* row) const override { std::memcpy(row, in, row_bytes(dim)); }
};

// A row's values times 2^-exponent fill the range of half precision.
class Fp16Codec final : public RowCodec {
 public:
  CodecKind kind() const override { return CodecKind::kFp16; }
  size_t row_bytes(int64_t dim) const override { return 1 + static_cast<size_t>(dim) * sizeof(uint16_t); }
  void encode_row(float* row, int32_t dim, char* out) const override {
    const float most = largest_magnitude(row, dim);
    int exponent = 0;
    if (std::isfinite(most) && most > 0) exponent = std::max(std::ilogb(most) - kTop, kExponentMin);
    *out = static_cast<char>(exponent);
    uint16_t halves[kBlock];
    for (int32_t k = 0; k < dim; k += kBlock) {
      const int32_t count = std::min(kBlock, dim - k);
      half_encode(row + k, std::ldexp(1.0f, -exponent), count, halves);
      std::memcpy(out + 1 + 2 * k, halves, sizeof(uint16_t) * static_cast<size_t>(count));
    }
    decode_row(out, dim, row);
  }
  void decode_row(const char* in, int32_t dim, float* row) const override {
    const float scale = std::ldexp(1.0f, static_cast<int8_t>(*in));
    uint16_t halves[kBlock];
    for (int32_t k = 0; k < dim; k += kBlock) {
      const int32_t count = std::min(kBlock, dim - k);
      std::memcpy(halves, in + 1 + 2 * k, sizeof(uint16_t) * static_cast<size_t>(count));
      half_decode(halves, scale, count, row + k);
    }
  }

 private:
  static constexpr int32_t kBlock = 256;     // a multiple of the padding
  static constexpr int kTop = 14;            // 2^14 <= largest half < 2^16
  static constexpr int kExponentMin = -112;  // 2^-exponent stays finite
};

// bf16: the range of a float in two bytes. What is cut off is sent later like any other error.
uint16_t narrow(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}
float widen(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

class OneBitCodec final : public RowCodec {
 public:
  CodecKind kind() const override { return CodecKind::kOneBit; }
  size_t row_bytes(int64_t dim) const override { return 2 * sizeof(uint16_t) + (static_cast<size_t>(dim) + 7) / 8; }
  void encode_row(float* row, int32_t dim, char* out) const override {
    write(onebit_encode(row, dim, bits_of(out)), out);
    decode_row(out, dim, row);
  }
  void decode_row(const char* in, int32_t dim, float* row) const override {
    onebit_decode(bits_of(in), read(in), dim, row);
  }
  ChangeSquares encode_change(const float* live, const float* known, int32_t dim, float*, char* out) const override {
    OneBitLevels levels;
    const ChangeSquares squares = onebit_encode_change(live, known, dim, bits_of(out), levels);
    write(levels, out);
    return squares;
  }
  void add_row(const char* in, float scale, int32_t dim, float*, float* to) const override {
    onebit_add(bits_of(in), read(in), scale, dim, to);
  }

 private:
  static void write(OneBitLevels levels, char* out) {
    const uint16_t stored[2] = {narrow(levels.high), narrow(levels.low)};
    std::memcpy(out, stored, sizeof(stored));
  }
  static OneBitLevels read(const char* in) {
    uint16_t stored[2];
    std::memcpy(stored, in, sizeof(stored));
    return {widen(stored[0]), widen(stored[1])};
  }
  static uint8_t* bits_of(char* row) { return reinterpret_cast<uint8_t*>(row + 2 * sizeof(uint16_t)); }
  static const uint8_t* bits_of(const char* row) {
    return reinterpret_cast<const uint8_t*>(row + 2 * sizeof(uint16_t));
  }
};

class FourBitCodec final : public RowCodec {
 public:
  CodecKind kind() const override { return CodecKind::kFourBit; }
  size_t row_bytes(int64_t dim) const override {
    return sizeof(uint16_t) + static_cast<size_t>(fourbit_bytes(static_cast<int32_t>(dim)));
  }
  void encode_row(float* row, int32_t dim, char* out) const override {
    write(row, largest_magnitude(row, dim), dim, out);
    decode_row(out, dim, row);
  }
  void decode_row(const char* in, int32_t dim, float* row) const override {
    fourbit_decode(nibbles_of(in), step_of(in), dim, row);
  }
  ChangeSquares encode_change(const float* live, const float* known, int32_t dim, float* change,
                              char* out) const override {
    const TakenChange taken = take_change(live, known, dim, change);
    write(change, taken.largest, dim, out);
    return taken;
  }
  void add_row(const char* in, float scale, int32_t dim, float*, float* to) const override {
    fourbit_add(nibbles_of(in), step_of(in), scale, dim, to);
  }

 private:
  static void write(const float* row, float most, int32_t dim, char* out) {
    const uint16_t stored = narrow(most / kFourBitMost);
    const float step = widen(stored);
    const bool can_be_said = step > kStepMin && std::isfinite(step);
    std::memcpy(out, can_be_said ? &stored : &kNoStep, sizeof(stored));
    fourbit_encode(row, can_be_said ? 1 / step : 0, dim, reinterpret_cast<uint8_t*>(out + sizeof(stored)));
  }
  static float step_of(const char* in) {
    uint16_t stored;
    std::memcpy(&stored, in, sizeof(stored));
    return widen(stored);
  }
  static const uint8_t* nibbles_of(const char* in) { return reinterpret_cast<const uint8_t*>(in + sizeof(uint16_t)); }

  static constexpr float kStepMin = 1e-37f;  // 1 / step is finite
  static constexpr uint16_t kNoStep = 0;
};

// The threshold is the magnitude that one value in twenty of the message reaches: so many are sent, whatever the
// learning rate has come down to (Strom fixes it for the whole run).
class StromCodec final : public Codec {
 public:
  CodecKind kind() const override { return CodecKind::kStrom; }

  void encode(MatrixView<float> rows, std::string& out) override {
    const float threshold = choose_threshold(rows);
    const int64_t values = rows.rows * rows.cols;
    const int64_t sent = threshold > 0 ? count_from(rows, threshold) : 0;
    RiceWriter writer(out);
    writer.header(threshold, sent, RiceWriter::best_shift(values, sent));
    int64_t last = -1;
    for (int64_t i = 0; i < rows.rows; ++i) {
      float* row = rows.row(i);
      for (int64_t k = 0; k < rows.cols; ++k) {
        const bool past = sent > 0 && std::abs(row[k]) >= threshold;
        if (past) {
          const int64_t place = i * rows.cols + k;
          writer.gap(static_cast<uint64_t>(place - last - 1), row[k] < 0);
          last = place;
        }
        row[k] = past ? std::copysign(threshold, row[k]) : 0.0f;
      }
    }
    writer.finish();
  }

  Status decode(std::string_view payload, MatrixView<float> rows) const override {
    RiceReader reader(payload);
    if (!reader.header()) return wrong_size("strom", payload.size(), rows.rows, rows.cols);
    for (int64_t i = 0; i < rows.rows; ++i) std::memset(rows.row(i), 0, sizeof(float) * static_cast<size_t>(rows.cols));
    const auto values = static_cast<uint64_t>(rows.rows * rows.cols);
    uint64_t place = 0;
    for (int64_t n = 0; n < reader.count(); ++n, ++place) {
      uint64_t gap = 0;
      bool negative = false;
      if (!reader.gap(gap, negative) || gap >= values || place + gap >= values)
        return wrong_size("strom", payload.size(), rows.rows, rows.cols);
      place += gap;
      const auto at = static_cast<int64_t>(place);
      rows.row(at / rows.cols)[at % rows.cols] = negative ? -reader.threshold() : reader.threshold();
    }
    if (!reader.at_end()) return wrong_size("strom", payload.size(), rows.rows, rows.cols);
    return {};
  }

 private:
  static constexpr int64_t kOneIn = 20, kSampled = 16'384;

  // By a sample of evenly spread values; half the largest where most values are zero.
  float choose_threshold(MatrixView<float> rows) {
    const int64_t values = rows.rows * rows.cols, step = values / kSampled + 1;
    magnitudes_.clear();
    for (int64_t at = 0; at < values; at += step)
      magnitudes_.push_back(std::abs(rows.row(at / rows.cols)[at % rows.cols]));
    if (magnitudes_.empty()) return 0;
    const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(magnitudes_.size() / kOneIn);
    std::nth_element(magnitudes_.begin(), nth, magnitudes_.end(), std::greater<>());
    if (*nth > 0) return std::isfinite(*nth) ? *nth : 0;
    float most = 0;
    for (int64_t i = 0; i < rows.rows; ++i)
      most = std::max(most, largest_magnitude(rows.row(i), static_cast<int32_t>(rows.cols)));
    return std::isfinite(most) ? most / 2 : 0;
  }
  static int64_t count_from(MatrixView<float> rows, float threshold) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows.rows; ++i)
      for (const float value : rows.row_span(i)) count += std::abs(value) >= threshold;
    return count;
  }

  std::vector<float> magnitudes_;
};

}  // namespace

ChangeSquares RowCodec::encode_change(const float* live, const float* known, int32_t dim, float* change,
                                      char* out) const {
  const ChangeSquares squares = take_change(live, known, dim, change);
  encode_row(change, dim, out);
  return squares;
}

void RowCodec::add_row(const char* in, float scale, int32_t dim, float* row, float* to) const {
  decode_row(in, dim, row);
  add_scaled(row, scale, dim, to);
}

void RowCodec::encode(MatrixView<float> rows, std::string& out) {
  const size_t each = row_bytes(rows.cols), start = out.size();
  out.resize(start + each * static_cast<size_t>(rows.rows));
  for (int64_t i = 0; i < rows.rows; ++i)
    encode_row(rows.row(i), static_cast<int32_t>(rows.cols), out.data() + start + each * static_cast<size_t>(i));
}

Status RowCodec::decode(std::string_view payload, MatrixView<float> rows) const {
  const size_t each = row_bytes(rows.cols);
  if (payload.size() != each * static_cast<size_t>(rows.rows))
    return wrong_size(name_of(kind()), payload.size(), rows.rows, rows.cols);
  for (int64_t i = 0; i < rows.rows; ++i)
    decode_row(payload.data() + each * static_cast<size_t>(i), static_cast<int32_t>(rows.cols), rows.row(i));
  return {};
}

std::unique_ptr<Codec> make_codec(CodecKind kind) {
  switch (kind) {
    case CodecKind::kFp32:
      return std::make_unique<Fp32Codec>();
    case CodecKind::kFp16:
      return std::make_unique<Fp16Codec>();
    case CodecKind::kOneBit:
      return std::make_unique<OneBitCodec>();
    case CodecKind::kStrom:
      return std::make_unique<StromCodec>();
    case CodecKind::kFourBit:
      return std::make_unique<FourBitCodec>();
  }
  return nullptr;
}

Result<CodecKind> parse_codec(std::string_view name, int64_t dim) {
  if (name == "auto") return dim <= kShortRow ? CodecKind::kFourBit : CodecKind::kOneBit;
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<CodecKind>(i);
  return error(Code::kInvalidArgument, "no codec is called '", name,
               "'; try auto, fp32, fp16, fourbit, onebit or strom");
}

Result<CodecKind> codec_of(uint8_t number) {
  if (number < std::size(kNames)) return static_cast<CodecKind>(number);
  return error(Code::kInvalidArgument, "a message has codec ", int{number}, ", which nobody knows");
}

std::string_view name_of(CodecKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace streamvec
