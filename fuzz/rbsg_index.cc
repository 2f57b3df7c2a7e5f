// rbsg.bin (model/rbsg_vectors.h): what is taken back is written as it was, and with encoders of its shape makes a
// finite vector of any spelling.
#include <cmath>

#include "fuzz/fuzz.h"
#include "streamvec/model/rbsg_vectors.h"

namespace streamvec {
namespace {

constexpr const char* kSpellings[] = {"where", "x", "\xEC\x97\xAC\xEC\x99\x95", "\xFF\xC3"};
constexpr int32_t kSideMax = 64;  // larger encoders are sound, too, but take their time

std::string file_of(RecurrentCell cell, std::vector<char32_t> admitted) {
  RbsgIndex index;
  index.shape = {.character_dim = 5, .hidden = 16, .dim = 3, .cell = cell};
  index.characters = {.size_max = 400};
  index.admitted = std::move(admitted);
  return index.encode();
}

bool is_small(const EncoderShape& shape) {
  return shape.hidden <= kSideMax && shape.dim <= kSideMax && shape.character_dim <= kSideMax;
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {file_of(RecurrentCell::kLstm, {U'w', U'h', U'e'}), file_of(RecurrentCell::kGru, {}),
                    file_of(RecurrentCell::kLstm, {0x1112, 0x1161, 0x10FFFF})},
          .words = {"svrbsgch", std::string("\x10\0\0\0", 4), std::string("\0\0\1\0", 4),
                    std::string("\xFF\xFF\xFF\x7F", 4), std::string(8, '\xFF')}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<RbsgIndex> index = RbsgIndex::decode(bytes, "rbsg.bin");
  if (!index.ok()) return 0;
  STREAMVEC_CHECK(index->encode() == bytes);
  if (!is_small(index->shape)) return 0;
  EncoderParameters encoder = EncoderParameters::make(index->shape).value();
  encoder.draw(1);
  const auto made = RbsgVectors::make(*index, std::move(encoder));
  if (!made.ok()) return 0;
  std::vector<float> out(static_cast<size_t>(index->shape.dim));
  for (const char* spelling : kSpellings) {
    STREAMVEC_CHECK((*made)->generate(spelling, out).ok());
    for (const float value : out) STREAMVEC_CHECK(std::isfinite(value));
  }
  return 0;
}
