// subword.bin (model/subword_vectors.h): what is taken back is written as it was, takes memory for the rows that are
// there alone, and makes a finite vector of any spelling.
#include <cmath>

#include "fuzz/fuzz.h"
#include "streamvec/model/subword_vectors.h"

namespace streamvec {
namespace {

constexpr int64_t kDim = 3;
constexpr const char* kSpellings[] = {"where", "x", "\xEC\x97\xAC\xEC\x99\x95", "\xFF\xC3"};

Matrix rows_of(int64_t rows) {
  Matrix matrix = Matrix::make(rows, kDim).value();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t d = 0; d < kDim; ++d) matrix.row(i)[d] = static_cast<float>(i - d) / 4;
  return matrix;
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {SubwordIndex{{3, 6, 1'000}, true, {3, 999, 0, 7}}.encode(),
                    SubwordIndex{{1, 64, kBucketMax, true}, false, {2'147'483'646}}.encode(),
                    SubwordIndex{{2, 2, 1}, false, {}}.encode()},
          .words = {"svsubwrd", std::string("\xFF\xFF\xFF\x7F", 4), std::string("\1\0\0\0", 4),
                    std::string("\0\0\0\0\0\0\0\x7F", 8), std::string(8, '\xFF')}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<SubwordIndex> index = SubwordIndex::decode(bytes, "subword.bin");
  if (!index.ok()) return 0;
  STREAMVEC_CHECK(index->encode() == bytes);
  const auto rows = static_cast<int64_t>(index->buckets.size());
  const auto made = SubwordVectors::make(*index, rows_of(rows), Matrix());
  if (!made.ok()) return 0;
  std::vector<float> out(kDim);
  for (const char* spelling : kSpellings) {
    STREAMVEC_CHECK((*made)->generate(spelling, out).ok());
    for (const float value : out) STREAMVEC_CHECK(std::isfinite(value));
  }
  return 0;
}
