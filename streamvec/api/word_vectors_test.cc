#include "streamvec/api/word_vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/testing_no_threads.h"
#include "streamvec/streamvec.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// north and south lie opposite each other, east across; far is a long vector to the east.
const std::vector<std::string> kWords = {"north", "south", "east", "far"};
constexpr float kValues[] = {0, 1, 0, -1, 1, 0, 9, 1};

WordVectors compass() {
  auto made = WordVectors::from_vectors(kWords, {kValues, 4, 2, 2});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

std::vector<std::string> words_of(const Result<std::vector<ScoredWord>>& scored) {
  std::vector<std::string> words;
  EXPECT_TRUE(scored.ok()) << scored.status().message();
  if (scored.ok())
    for (const ScoredWord& each : *scored) words.push_back(each.word);
  return words;
}

class Directory {
 public:
  Directory() : path_(fs::temp_directory_path() / ("word_vectors_test." + std::to_string(::getpid()))) {
    fs::remove_all(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  std::string of(const std::string& name) const {
    fs::create_directories(path_);
    return path_ / name;
  }

 private:
  fs::path path_;
};

TEST(WordVectors, NeighboursLeaveOutTheWordsGiven) {
  const WordVectors vectors = compass();
  EXPECT_THAT(words_of(vectors.most_similar({"east"})), ElementsAre("far", "north", "south"));
  EXPECT_THAT(words_of(vectors.most_similar({"south"}, {"east"})), ElementsAre("north", "far"));
  EXPECT_THAT(words_of(vectors.most_similar({std::vector<float>{0, -2}}, {}, 1)), ElementsAre("south"));
  EXPECT_THAT(words_of(vectors.most_similar({"east"}, {}, 0)), ElementsAre());
  EXPECT_THAT(words_of(vectors.most_similar({"east"}, {}, std::numeric_limits<int32_t>::max())),
              ElementsAre("far", "north", "south"));
}

TEST(WordVectors, WordsCountByTheirDirectionAndVectorsAsTheyAre) {
  const WordVectors vectors = compass();
  // Were far's length to count, south would not turn the sum.
  EXPECT_NEAR((*vectors.most_similar({"far", "south"}))[0].score, 0.75, 0.05);
  EXPECT_GT((*vectors.most_similar({std::vector<float>{9, 1}, "south"}))[0].score, 0.99);
}

TEST(WordVectors, BadQuestionsAreRefused) {
  const WordVectors vectors = compass();
  EXPECT_EQ(vectors.most_similar({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(vectors.most_similar({std::vector<float>{1}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(vectors.most_similar({std::vector<float>{NAN, 1}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(vectors.most_similar({"west"}).status().code(), Code::kNotFound);
  EXPECT_THAT(vectors.most_similar({"far"}, {"far"}).status().message(), HasSubstr("cancel each other out"));
  EXPECT_THAT(vectors.most_similar({"north", "south"}).status().message(), HasSubstr("cancel each other out"));
  EXPECT_THAT(vectors.similarity("north", "west").status().message(), HasSubstr("west"));
  EXPECT_EQ(vectors.doesnt_match({}).status().code(), Code::kInvalidArgument);
}

TEST(WordVectors, WordsWithoutADirectionHaveNeighboursAtCosineZero) {
  const std::vector<std::string> words = {"nothing", "one"};
  const std::vector<float> values = {0, 1};
  const auto vectors = WordVectors::from_vectors(words, {values.data(), 2, 1, 1});
  const auto near = vectors->most_similar({"nothing"});
  EXPECT_THAT(words_of(near), ElementsAre("one"));
  EXPECT_EQ((*near)[0].score, 0);
}

TEST(WordVectors, LongVectorsMayBeAdded) {
  const float most = std::numeric_limits<float>::max();
  const auto near = compass().most_similar({std::vector<float>{most, 0}, std::vector<float>{most, 0}}, {}, 1);
  EXPECT_THAT(words_of(near), ElementsAre("east"));
  EXPECT_NEAR((*near)[0].score, 1, 1e-6);
}

TEST(WordVectors, TheWordFarthestFromTheMeanDoesNotMatch) {
  EXPECT_EQ(*compass().doesnt_match({"north", "east", "far"}), "north");
  EXPECT_NEAR(*compass().similarity("north", "south"), -1, 1e-6);
}

TEST(WordVectors, CopiesShareTheVectors) {
  const WordVectors one = compass();
  const WordVectors other = one;
  EXPECT_EQ(one.vectors().data, other.vectors().data);
}

TEST(WordVectors, BadVectorsAreRefused) {
  const auto code = [](std::vector<std::string> words, std::vector<float> values, std::vector<int64_t> counts) {
    const auto rows = static_cast<int64_t>(values.size());
    return WordVectors::from_vectors(words, {values.data(), rows, 1, 1}, counts).status().code();
  };
  EXPECT_EQ(code({"a"}, {1}, {2}), Code::kOk);
  EXPECT_EQ(code({"a"}, {1, 2}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({"a", "a"}, {1, 2}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({"a"}, {INFINITY}, {}), Code::kInvalidArgument);
  EXPECT_EQ(code({"a"}, {1}, {1, 2}), Code::kInvalidArgument);
  EXPECT_EQ(code({"a"}, {1}, {-1}), Code::kInvalidArgument);
  EXPECT_EQ(code({""}, {1}, {}), Code::kInvalidArgument);
}

TEST(WordVectors, ASavedModelLoadsAndIsNotOverwritten) {
  const Directory directory;
  const std::string path = directory.of("model");
  ASSERT_TRUE(compass().save(path).ok());
  const auto loaded = WordVectors::load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->size(), 4);
  EXPECT_EQ(*loaded->get_vector("far"), (std::vector<float>{9, 1}));
  EXPECT_EQ(compass().save(path).code(), Code::kAlreadyExists);
  ASSERT_TRUE(compass().export_vectors(directory.of("v.txt"), "word2vec").ok());
  EXPECT_EQ(WordVectors::import_vectors(directory.of("v.txt"))->size(), 4);
  EXPECT_EQ(compass().export_vectors(directory.of("v.x"), "x").code(), Code::kInvalidArgument);
}

// 50 lines, each time.
class Lines : public DocumentReader {
 public:
  Result<int64_t> read(Deadline, std::vector<Document>& out) override {
    if (left_ == 0) return 0;
    --left_;
    out.push_back({"north and south and east", ""});
    return 1;
  }
  Status rewind() override {
    left_ = 50;
    return {};
  }

 private:
  int left_ = 50;
};

TrainOptions small() {
  TrainOptions options;
  options.dim = 8;
  options.threads = 1;
  return options;
}

std::vector<std::unique_ptr<Source>> source_of(std::unique_ptr<DocumentReader> reader, bool replayable) {
  DocumentSource::Options how;
  how.replayable = replayable;
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<DocumentSource>(std::move(reader), how));
  return sources;
}

TEST(WordVectors, SourcesOfTheCallersOwnAreTrainedOn) {
  const Directory directory;
  TrainOptions options = small();
  options.epochs = 2;
  const auto trained = train(options, source_of(std::make_unique<Lines>(), true), directory.of("m"), TrainHooks());
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->tokens, 2 * 50 * 5);
  EXPECT_EQ(WordVectors::load(directory.of("m"))->size(), 4);
}

TEST(WordVectors, FilesMayBeNamedInPlace) {
  const Directory directory;
  const std::string a = directory.of("a.txt"), b = directory.of("b.txt");
  for (const std::string& name : {a, b}) std::ofstream(name) << "north and south and east\n";
  TrainOptions options = small();
  options.min_count = 1;
  const auto trained = train(options, {a.c_str(), b.c_str()}, directory.of("m"), TrainHooks());
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->tokens, 2 * 5);
}

TEST(WordVectors, TrainingNeedsASource) {
  const Directory directory;
  EXPECT_EQ(train(small(), {}, directory.of("m"), TrainHooks()).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(train(small(), std::vector<std::unique_ptr<Source>>(), directory.of("m"), TrainHooks()).status().code(),
            Code::kInvalidArgument);
}

// The system has no more threads once these are read for the second time, or are about to be.
class ThreadsRunOut : public Lines {
 public:
  explicit ThreadsRunOut(bool about_to_be_read) : at_rewind_(about_to_be_read) {}
  Result<int64_t> read(Deadline deadline, std::vector<Document>& out) override {
    if (again_ && !none_) none_.emplace();
    return Lines::read(deadline, out);
  }
  Status rewind() override {
    again_ = true;
    if (at_rewind_ && !none_) none_.emplace();
    return Lines::rewind();
  }

 private:
  const bool at_rewind_;
  bool again_ = false;
  std::optional<NoMoreThreads> none_;
};

TEST(WordVectors, WithoutThreadsNothingIsTrained) {
  const Directory directory;
  const auto code_of = [&](const std::string& model, std::unique_ptr<DocumentReader> reader) {
    TrainOptions options = small();
    options.model = model;
    options.threads = 2;
    return train(options, source_of(std::move(reader), true), directory.of("m"), TrainHooks()).status().code();
  };
  {
    const NoMoreThreads none;
    EXPECT_EQ(code_of("sgns", std::make_unique<Lines>()), Code::kResourceExhausted) << "to count words";
  }
  EXPECT_EQ(code_of("sgns", std::make_unique<ThreadsRunOut>(true)), Code::kResourceExhausted) << "to train";
  EXPECT_EQ(code_of("glove", std::make_unique<ThreadsRunOut>(true)), Code::kResourceExhausted) << "to count cells";
  EXPECT_EQ(code_of("glove", std::make_unique<ThreadsRunOut>(false)), Code::kResourceExhausted) << "to train";
  EXPECT_EQ(WordVectors::load(directory.of("m")).status().code(), Code::kNotFound);
  EXPECT_EQ(code_of("glove", std::make_unique<Lines>()), Code::kOk);
}

}  // namespace
}  // namespace streamvec
