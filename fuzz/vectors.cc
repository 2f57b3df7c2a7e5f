// Vectors of other programs (format/vectors.h): word2vec's text and binary, GloVe's, plain or compressed. What is
// imported has a finite row for each word, and exported and imported again it is the same.
#include "streamvec/format/vectors.h"

#include <cmath>
#include <cstring>

#include "fuzz/compressed.h"
#include "fuzz/fuzz.h"

namespace streamvec {
namespace {

void check_same(const Snapshot& a, const Snapshot& b) {
  STREAMVEC_CHECK_EQ(a.vocabulary.size(), b.vocabulary.size());
  STREAMVEC_CHECK_EQ(a.dim(), b.dim());
  for (Slot slot = 0; slot < a.vocabulary.size(); ++slot) {
    STREAMVEC_CHECK(a.vocabulary.word(slot) == b.vocabulary.word(slot));
    STREAMVEC_CHECK(std::memcmp(a.input.row(slot), b.input.row(slot), static_cast<size_t>(a.dim()) * sizeof(float)) ==
                    0);
  }
}

}  // namespace

FuzzStart fuzz_start() {
  const std::string text = "2 3\nking 0.5 -1e-3 2\nqueen 1 2 3.25\n", glove = "king 0.5 1\nqueen -1 2\nnew york 1 2\n";
  const std::string row("\0\0\x80?\0\0\0\xC0", 8);
  return {.seeds = {text, glove, "2 2\nking " + row + "\nqueen " + row + "\n", "1 2\nking " + row, gzip_of(text),
                    bzip2_of(glove)},
          .words = {"1 1\n", "999999999999 300\n", "nan", "inf", "1e39", "1e-46", "-0", "\r\n", "\xFF"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const MemoryFile file({reinterpret_cast<const char*>(data), size}), written;
  const Result<Snapshot> snapshot = import_vectors(file.path());
  if (!snapshot.ok()) return 0;
  STREAMVEC_CHECK(snapshot->vocabulary.size() > 0 && snapshot->dim() > 0);
  STREAMVEC_CHECK_EQ(snapshot->input.rows(), snapshot->vocabulary.size());
  for (Slot slot = 0; slot < snapshot->vocabulary.size(); ++slot)
    for (int64_t i = 0; i < snapshot->dim(); ++i) STREAMVEC_CHECK(std::isfinite(snapshot->input.row(slot)[i]));
  if (!export_vectors(*snapshot, VectorFormat::kWord2vecBinary, written.path()).ok()) return 0;
  const Result<Snapshot> again = import_vectors(written.path());
  STREAMVEC_CHECK(again.ok());
  check_same(*snapshot, *again);
  return 0;
}
