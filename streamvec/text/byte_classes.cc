#include "streamvec/text/byte_classes.h"

#include <cstring>

// Highway compiles what stands between its BEFORE and AFTER once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/text/byte_classes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<uint8_t, kByteBlockBytes>;

template <typename Mask>
uint64_t bits_of(Mask mask) {
  uint8_t bytes[kByteBlockBytes / 8] = {};
  hn::StoreMaskBits(Bytes(), mask, bytes);
  uint64_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

template <typename V>
auto between(V v, uint8_t first, uint8_t last) {
  const Bytes d;
  const auto offset = hn::Sub(v, hn::Set(d, first));
  return hn::Eq(offset, hn::Min(offset, hn::Set(d, static_cast<uint8_t>(last - first))));
}

template <typename V>
auto equal(V v, uint8_t byte) {
  return hn::Eq(v, hn::Set(Bytes(), byte));
}

// Adds the bits of one vector, whose first byte is byte `shift` of the block.
template <typename V>
void add_vector(V v, size_t shift, ByteBlock& block) {
  const auto digit = between(v, '0', '9');
  const auto letter = between(hn::Or(v, hn::Set(Bytes(), 0x20)), 'a', 'z');
  block.alnum |= bits_of(hn::Or(letter, digit)) << shift;
  block.digit |= bits_of(digit) << shift;
  block.upper |= bits_of(between(v, 'A', 'Z')) << shift;
  block.joiner |= bits_of(hn::Or(equal(v, '\''), equal(v, '_'))) << shift;
  block.point |= bits_of(hn::Or(equal(v, '.'), equal(v, ','))) << shift;
  block.white |= bits_of(hn::Or(equal(v, ' '), between(v, '\t', '\r'))) << shift;
  block.line_feed |= bits_of(equal(v, '\n')) << shift;
  block.carriage |= bits_of(equal(v, '\r')) << shift;
  block.special |= bits_of(hn::Or(equal(v, 0), between(v, 0x80, 0xff))) << shift;
}

void classify(const char* text, int64_t blocks, ByteBlock* out) {
  const Bytes d;
  const size_t lanes = hn::Lanes(d);
  for (int64_t i = 0; i < blocks; ++i) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(text) + i * kByteBlockBytes;
    ByteBlock block = {};
    for (size_t at = 0; at < kByteBlockBytes; at += lanes) add_vector(hn::LoadU(d, bytes + at), at, block);
    out[i] = block;
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {

HWY_EXPORT(classify);

void classify_bytes(const char* text, int64_t blocks, ByteBlock* out) {
  HWY_DYNAMIC_DISPATCH(classify)(text, blocks, out);
}

}  // namespace streamvec
#endif
