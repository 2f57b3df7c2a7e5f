#include "streamvec/format/fasttext_bin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "streamvec/core/random.h"
#include "streamvec/format/vectors.h"
#include "streamvec/model/subword_vectors.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kDim = 5;
constexpr NgramOptions kNgrams{3, 6, 40};
constexpr size_t kDictionaryAt = 64;  // after magic, version and settings

Matrix random_rows(int64_t rows, uint64_t seed) {
  Matrix matrix = std::move(Matrix::make(rows, kDim)).value();
  Random random(seed);
  for (int64_t i = 0; i < rows; ++i)
    for (float& value : matrix.view().row_span(i)) value = random.uniform() - 0.5f;
  return matrix;
}

class FasttextBin : public ::testing::Test {
 protected:
  FasttextBin() : path_(::testing::TempDir() + "fasttext_bin_" + std::to_string(::getpid()) + ".bin") {}
  ~FasttextBin() override { std::filesystem::remove(path_); }

  // Three words; only some buckets have rows.
  static Snapshot subword_snapshot() {
    Snapshot snapshot;
    snapshot.model = "subword";
    snapshot.vocabulary.add("where", 7);
    snapshot.vocabulary.add("여왕", 5);
    snapshot.vocabulary.add("</s>", 2);
    auto subwords = std::move(SubwordVectors::make({kNgrams, false, {3, 0, 39, 17, 20, 21, 22}}, random_rows(7, 1),
                                                   random_rows(3, 2)))
                        .value();
    snapshot.input = std::move(composed_rows(snapshot.vocabulary, *subwords)).value();
    snapshot.output = random_rows(3, 3);
    snapshot.generator = std::move(subwords);
    return snapshot;
  }

  std::string bytes_of(const Snapshot& snapshot) {
    EXPECT_TRUE(export_vectors(snapshot, VectorFormat::kFasttextBin, path_).ok());
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Result<Snapshot> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read_fasttext_bin(path_);
  }

  template <typename T>
  static std::string changed(std::string bytes, size_t at, T value) {
    bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    return bytes;
  }

  const std::string path_;
};

void expect_equal(const Matrix& a, const Matrix& b) {
  ASSERT_EQ(a.rows(), b.rows());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t d = 0; d < a.cols(); ++d) ASSERT_EQ(a.row(i)[d], b.row(i)[d]) << "row " << i;
}

TEST_F(FasttextBin, ASubwordModelComesBackWithEveryVector) {
  const Snapshot written = subword_snapshot();
  bytes_of(written);
  const auto found = import_vectors(path_);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->model, "subword");
  ASSERT_EQ(found->vocabulary.size(), 3);
  EXPECT_EQ(found->vocabulary.word(1), "여왕");
  EXPECT_EQ(found->vocabulary.count(1), 5);
  expect_equal(found->input, written.input);
  expect_equal(found->output, written.output);
  for (const char* word : {"where", "nowhere", "왕", "x"}) {
    std::vector<float> before(kDim), after(kDim);
    ASSERT_TRUE(written.generator->generate(word, before).ok());
    ASSERT_TRUE(found->generator->generate(word, after).ok());
    EXPECT_EQ(before, after) << word;
  }
}

TEST_F(FasttextBin, AModelWithoutNgramsComesBackAsWords) {
  Snapshot plain;
  plain.model = "cbow";
  plain.vocabulary.add("a", 3);
  plain.vocabulary.add("b", 1);
  plain.input = random_rows(2, 4);
  const auto found = read(bytes_of(plain));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->model, "cbow");
  EXPECT_EQ(found->generator, nullptr);
  expect_equal(found->input, plain.input);
}

TEST_F(FasttextBin, ACutAnywhereIsAnErrorThatNamesTheFile) {
  const std::string bytes = bytes_of(subword_snapshot());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto found = read(bytes.substr(0, size));
    ASSERT_FALSE(found.ok()) << size;
    ASSERT_THAT(found.status().message(), HasSubstr(path_ + ": byte ")) << size;
  }
  EXPECT_EQ(read(bytes + "x").status().code(), Code::kDataLoss);
}

TEST_F(FasttextBin, NumbersThatPromiseMoreThanTheFileHoldsAreRefused) {
  const std::string bytes = bytes_of(subword_snapshot());
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  EXPECT_FALSE(read(changed(bytes, 8, kHuge)).ok()) << "dim";
  EXPECT_FALSE(read(changed(bytes, 8, -1)).ok()) << "dim";
  EXPECT_FALSE(read(changed(bytes, 40, kHuge)).ok()) << "bucket";
  EXPECT_FALSE(read(changed(bytes, 48, kHuge)).ok()) << "maxn";
  EXPECT_FALSE(read(changed(changed(bytes, kDictionaryAt, kHuge), kDictionaryAt + 4, kHuge)).ok()) << "words";
  const size_t input_at = bytes.size() - (17 + 3 * kDim * 4) - (43 * kDim * 4) - 16;
  EXPECT_FALSE(read(changed(bytes, input_at, int64_t{1} << 60)).ok()) << "rows";
  EXPECT_FALSE(read(changed(bytes, input_at + 8, int64_t{1} << 60)).ok()) << "cols";
}

TEST_F(FasttextBin, WhatCannotBeImportedSaysWhy) {
  const std::string bytes = bytes_of(subword_snapshot());
  EXPECT_THAT(read(changed(bytes, 0, 1)).status().message(), HasSubstr("no .bin file of fastText"));
  EXPECT_THAT(read(changed(bytes, 4, 13)).status().message(), HasSubstr("version 13"));
  EXPECT_THAT(read(changed(bytes, 36, 3)).status().message(), HasSubstr("supervised"));
  EXPECT_THAT(read(changed(bytes, kDictionaryAt + 20, int64_t{0})).status().message(), HasSubstr("quantised"));
  const size_t input_at = bytes.size() - (17 + 3 * kDim * 4) - (43 * kDim * 4) - 17;
  EXPECT_THAT(read(changed(bytes, input_at, char{1})).status().message(), HasSubstr("quantised"));
  EXPECT_THAT(read(changed(bytes, input_at + 17, std::numeric_limits<float>::infinity())).status().message(),
              HasSubstr("not finite"));
}

TEST_F(FasttextBin, AWordWithNulIsNotWritten) {
  Snapshot plain;
  plain.vocabulary.add(std::string_view("a\0b", 3), 3);
  plain.input = random_rows(1, 4);
  const Status status = export_vectors(plain, VectorFormat::kFasttextBin, path_);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace streamvec
