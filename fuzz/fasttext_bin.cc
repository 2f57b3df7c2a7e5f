// fastText's model files (format/fasttext_bin.h): what is imported has a finite row for each word and a vector for any
// spelling, and exported and imported again it is the same.
#include "streamvec/format/fasttext_bin.h"

#include <cmath>
#include <cstring>

#include "fuzz/fuzz.h"
#include "streamvec/model/subword_vectors.h"

namespace streamvec {
namespace {

constexpr const char* kSpellings[] = {"where", "x", "\xEC\x97\xAC\xEC\x99\x95", "\xFF\xC3"};

Matrix rows_of(int64_t rows, int64_t dim) {
  Matrix matrix = Matrix::make(rows, dim).value();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t d = 0; d < dim; ++d) matrix.row(i)[d] = static_cast<float>(i - d) / 4;
  return matrix;
}

std::string file_of(const Snapshot& snapshot) {
  const MemoryFile file;
  FileWriter writer = FileWriter::create(file.path()).value();
  STREAMVEC_CHECK(write_fasttext_bin(snapshot, writer).ok() && writer.close().ok());
  return file.bytes();
}

Snapshot words_alone() {
  Snapshot snapshot;
  snapshot.vocabulary.add("where", 7);
  snapshot.vocabulary.add("</s>", 2);
  snapshot.input = rows_of(2, 3);
  return snapshot;
}

Snapshot words_with_ngrams() {
  Snapshot snapshot = words_alone();
  snapshot.model = "subword";
  auto subwords = SubwordVectors::make({{3, 6, 8}, false, {3, 0, 7}}, rows_of(3, 3), rows_of(2, 3)).value();
  snapshot.input = composed_rows(snapshot.vocabulary, *subwords).value();
  snapshot.generator = std::move(subwords);
  return snapshot;
}

bool same_bytes(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

// Sums of many large values may overflow: what is checked are the rows as they were stored.
void check_rows(const Snapshot& snapshot) {
  STREAMVEC_CHECK(snapshot.vocabulary.size() > 0 && snapshot.dim() > 0);
  STREAMVEC_CHECK_EQ(snapshot.input.rows(), snapshot.vocabulary.size());
  const auto* subwords = dynamic_cast<const SubwordVectors*>(snapshot.generator.get());
  const Matrix& stored = subwords != nullptr ? subwords->words() : snapshot.input;
  for (Slot slot = 0; slot < snapshot.vocabulary.size(); ++slot)
    for (int64_t i = 0; i < snapshot.dim(); ++i) STREAMVEC_CHECK(std::isfinite(stored.row(slot)[i]));
}

void check_same(const Snapshot& a, const Snapshot& b) {
  STREAMVEC_CHECK_EQ(a.vocabulary.size(), b.vocabulary.size());
  STREAMVEC_CHECK_EQ(a.dim(), b.dim());
  for (Slot slot = 0; slot < a.vocabulary.size(); ++slot) {
    STREAMVEC_CHECK(a.vocabulary.word(slot) == b.vocabulary.word(slot));
    STREAMVEC_CHECK(same_bytes(a.input.row(slot), b.input.row(slot), a.dim()));
  }
  STREAMVEC_CHECK((a.generator == nullptr) == (b.generator == nullptr));
  if (a.generator == nullptr) return;
  std::vector<float> one(static_cast<size_t>(a.dim())), two(one.size());
  for (const char* spelling : kSpellings) {
    STREAMVEC_CHECK(a.generator->generate(spelling, one).ok() && b.generator->generate(spelling, two).ok());
    STREAMVEC_CHECK(same_bytes(one.data(), two.data(), a.dim()));
  }
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {file_of(words_alone()), file_of(words_with_ngrams())},
          .words = {std::string("\xBA\x16\x4F\x2F\x0C\0\0\0", 8), std::string("\x0B\0\0\0", 4),
                    std::string("\xFF\xFF\xFF\x7F", 4), std::string(8, '\xFF'), std::string("\0\0\0\0\0\0\0\x7F", 8),
                    std::string("\0\0\x80\x7F", 4), std::string("\x01", 1)}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const MemoryFile file({reinterpret_cast<const char*>(data), size}), written;
  const Result<Snapshot> snapshot = read_fasttext_bin(file.path());
  if (!snapshot.ok()) return 0;
  check_rows(*snapshot);
  FileWriter writer = FileWriter::create(written.path()).value();
  STREAMVEC_CHECK(write_fasttext_bin(*snapshot, writer).ok() && writer.close().ok());
  const Result<Snapshot> again = read_fasttext_bin(written.path());
  STREAMVEC_CHECK(again.ok());
  check_same(*snapshot, *again);
  return 0;
}
