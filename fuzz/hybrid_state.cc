// hybrid.bin (model/hybrid.h): what is taken back is saved as it was, makes finite vectors, and learns on. The first
// byte says how many rows of n-grams the checkpoint's table has.
#include <algorithm>
#include <cmath>

#include "fuzz/fuzz.h"
#include "streamvec/model/hybrid.h"
#include "streamvec/model/parameters.h"

namespace streamvec {
namespace {

constexpr int64_t kDim = 4, kWords = 6;
constexpr const char* kVocabulary[kWords] = {"boat", "boats", "boating", "ship", "ships", "shipping"};
constexpr const char* kSpellings[] = {"boater", "x", "\xEC\x97\xAC\xEC\x99\x95", "\xFF\xC3"};

Matrix rows_of(int64_t rows) {
  Matrix matrix = Matrix::make(rows, kDim, std::max<int64_t>(rows, kWords)).value();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t d = 0; d < kDim; ++d) matrix.row(i)[d] = static_cast<float>(i - d) / 4;
  return matrix;
}

Chunk all_words() {
  Chunk chunk;
  for (Slot slot = 0; slot < kWords; ++slot) chunk.slots.push_back(slot);
  chunk.sentence_ends = {kWords};
  return chunk;
}

Parameters tables() {
  Parameters parameters = std::move(Parameters::make({.rows = kWords, .dim = kDim})).value();
  parameters.input.rows = rows_of(kWords);
  return parameters;
}

std::string state_after(int chunks) {
  Parameters parameters = tables();
  const auto hybrid = Hybrid::make({.dim = kDim, .words_max = kWords, .bag = {.bucket_bits = 8}}).value();
  for (Slot slot = 0; slot < kWords; ++slot) hybrid->set_word(slot, kVocabulary[slot]);
  for (int i = 0; i < chunks; ++i) hybrid->learn(all_words(), parameters);
  const Hybrid::Saved saved = hybrid->save();
  return static_cast<char>(saved.rows.rows) + saved.state;
}

void check_vectors(const Hybrid& hybrid) {
  Matrix row = Matrix::make(1, kDim).value();
  for (const char* spelling : kSpellings) {
    hybrid.make_vector(spelling, row.row(0));
    for (int64_t d = 0; d < kDim; ++d) STREAMVEC_CHECK(std::isfinite(row.row(0)[d]));
  }
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {state_after(0), state_after(3), state_after(50)},
          .words = {"svhybrid", std::string("\x1E\0\0\0", 4), std::string("\0\0\xC0\x7F", 4),
                    std::string("\0\0\0\0\0\0\xF0\x7F", 8), std::string(8, '\xFF'),
                    std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8)}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const Matrix rows = rows_of(input.byte());
  const auto restored = Hybrid::restore(input.rest(), "hybrid.bin", kWords, rows.view(), {});
  if (!restored.ok() || (*restored)->options().dim != kDim) return 0;
  Hybrid& hybrid = **restored;
  STREAMVEC_CHECK(hybrid.save().state == input.rest());
  check_vectors(hybrid);
  for (Slot slot = 0; slot < kWords; ++slot) hybrid.restore_word(slot, kVocabulary[slot]);
  Parameters parameters = tables();
  for (int i = 0; i < 10; ++i) hybrid.learn(all_words(), parameters);
  check_vectors(hybrid);
  return 0;
}
