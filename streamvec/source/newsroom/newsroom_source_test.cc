#include "streamvec/source/newsroom/newsroom_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "streamvec/source/newsroom/page_fault.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {
namespace {

using newsroom::PageFault;
using newsroom::Site;
using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

std::unique_ptr<NewsroomSource> open(NewsroomSource::Options options) {
  Result<std::unique_ptr<NewsroomSource>> source = NewsroomSource::open(options);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(source).value();
}

std::vector<int64_t> numbers_of(const std::vector<Document>& documents) {
  std::vector<int64_t> numbers;
  for (const Document& document : documents) numbers.push_back(Site::article_number(document.id));
  return numbers;
}

// Those of the first `count` articles that can be read.
std::set<int64_t> readable(int64_t count, double faults) {
  std::set<int64_t> numbers;
  for (int64_t number = 0; number < count; ++number)
    if (is_readable(newsroom::page_fault(1, number, faults))) numbers.insert(number);
  return numbers;
}

std::map<std::string, int64_t> count_words(const std::vector<Document>& documents) {
  Tokenizer tokenizer;
  Tokens tokens;
  std::map<std::string, int64_t> counts;
  for (const Document& document : documents) {
    tokenizer.tokenize(document.text, tokens);
    for (const std::string_view word : tokens.words) ++counts[std::string(word)];
  }
  return counts;
}

TEST(NewsroomSource, HandsOutEveryReadableArticleOnceAndEnds) {
  const auto source = open({.articles = 400, .rate = 0});
  const Result<std::vector<Document>> documents = read_all(*source, 50);
  ASSERT_TRUE(documents.ok()) << documents.status().message();
  const std::vector<int64_t> numbers = numbers_of(*documents);
  const std::set<int64_t> distinct(numbers.begin(), numbers.end());
  EXPECT_EQ(distinct.size(), numbers.size()) << "none twice";
  EXPECT_EQ(distinct, readable(400, 1));
  EXPECT_EQ(source->articles_read(), static_cast<int64_t>(numbers.size()));
}

TEST(NewsroomSource, ReadsTheStoriesAndLeavesTrapsAndBoilerplate) {
  const auto source = open({.articles = 200, .rate = 0, .change_at = 100, .faults = 0});
  const std::vector<Document> documents = read_all(*source, 50).value();
  ASSERT_EQ(documents.size(), 200U);
  const auto counts = count_words(documents);
  EXPECT_THAT(counts, Not(Contains(Key(newsroom::kTrapWord))));
  const newsroom::Writer writer({.seed = 1, .change_at = 100});
  std::vector<Document> stories;
  for (int64_t number = 0; number < 200; ++number) stories.push_back({writer.story(number).text(), ""});
  int64_t written = 0, read = 0, leaked = 0;
  for (const auto& [word, count] : count_words(stories)) {
    written += count;
    read += std::min(count, counts.contains(word) ? counts.at(word) : 0);
  }
  for (const auto& [word, count] : counts) leaked += newsroom::boilerplate_words().contains(word) ? count : 0;
  EXPECT_GE(read, written * 97 / 100);
  EXPECT_LE(leaked, written * 3 / 100);
}

TEST(NewsroomSource, ComesAboutInTheOrderOfPublication) {
  const auto source = open({.articles = 600, .rate = 0, .faults = 0});
  const std::vector<int64_t> numbers = numbers_of(read_all(*source, 10).value());
  ASSERT_EQ(numbers.size(), 600U);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(static_cast<double>(numbers[i]), static_cast<double>(i), 200);
}

TEST(NewsroomSource, GoesOnAfterARestartWithoutLossOrRepetition) {
  const NewsroomSource::Options options = {.articles = 300, .rate = 0, .faults = 0};
  std::vector<Document> documents;
  std::string saved;
  for (bool done = false; !done;) {
    const auto source = open(options);
    if (!saved.empty()) {
      const Status status = source->seek(saved);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    // Reads some further than what is saved: that part is lost with the process and must come again.
    std::vector<Document> read;
    while (read.size() < 120 && !done)
      done = source->read(20, Deadline::after(std::chrono::seconds(30)), read).value() == 0;
    const size_t kept = done ? read.size() : read.size() / 2;
    if (kept > 0) {
      saved = source->saved(read[kept - 1].cursor);
      ASSERT_TRUE(source->commit(read[kept - 1].cursor).ok());
    }
    documents.insert(documents.end(), read.begin(), read.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  const std::vector<int64_t> numbers = numbers_of(documents);
  EXPECT_EQ(numbers.size(), 300U);
  EXPECT_EQ(std::set<int64_t>(numbers.begin(), numbers.end()), readable(300, 0));
}

TEST(NewsroomSource, StartsAnew) {
  const auto source = open({.articles = 30, .rate = 0, .faults = 0});
  EXPECT_EQ(read_all(*source, 50).value().size(), 30U);
  ASSERT_TRUE(source->seek("").ok());
  EXPECT_EQ(read_all(*source, 50).value().size(), 30U);
}

TEST(NewsroomSource, KeepsToItsRateAndToDeadlines) {
  const auto source = open({.articles = 1'000, .rate = 10, .faults = 0});
  std::vector<Document> documents;
  ASSERT_TRUE(source->read(50, Deadline::after(std::chrono::seconds(30)), documents).ok());
  const Result<int64_t> none = source->read(50, Deadline::after({}), documents);
  EXPECT_TRUE(none.ok() || none.status().code() == Code::kDeadlineExceeded);
  EXPECT_LE(source->site().published(), 100);
}

TEST(NewsroomSource, EndlessGoesOnAfterItsArticles) {
  const auto source = open({.articles = 20, .rate = 0, .endless = true, .faults = 0});
  std::vector<Document> documents;
  while (documents.size() < 60)
    ASSERT_TRUE(source->read(20, Deadline::after(std::chrono::seconds(30)), documents).value() > 0);
}

TEST(NewsroomSource, RefusesWhatItDoesNotUnderstand) {
  for (const char* name : {"newsroom:x", "newsroom://host/", "newsroom:?articles=0", "newsroom:?size=5",
                           "newsroom:?rate=-1", "newsroom:?endless=2", "newsroom:?seed="})
    EXPECT_EQ(NewsroomSource::open(name).status().code(), Code::kInvalidArgument) << name;
  const auto source = open({.articles = 20});
  EXPECT_EQ(source->seek("rubbish").code(), Code::kInvalidArgument);
  EXPECT_EQ(source->seek("{}").code(), Code::kInvalidArgument);
  EXPECT_EQ(source->name(), "newsroom:?articles=20&seed=1&change=10");
}

TEST(NewsroomSource, RefusesTheStateOfAnotherNewsroom) {
  const auto one = open({.articles = 20, .rate = 0}), other = open({.articles = 21, .rate = 0});
  std::vector<Document> documents;
  ASSERT_TRUE(one->read(1, Deadline::after(std::chrono::seconds(30)), documents).ok());
  EXPECT_EQ(other->seek(one->saved(documents[0].cursor)).code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace streamvec
