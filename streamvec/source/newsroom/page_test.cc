#include "streamvec/source/newsroom/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "streamvec/source/newsroom/site.h"
#include "streamvec/text/article.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec::newsroom {
namespace {

using ::testing::HasSubstr;

std::map<std::string, int> count_words(const std::string& text) {
  Tokenizer tokenizer;
  Tokens tokens;
  tokenizer.tokenize(text, tokens);
  std::map<std::string, int> counts;
  for (const std::string_view word : tokens.words) ++counts[std::string(word)];
  return counts;
}

Page sample(int64_t number) {
  const Writer writer({});
  return {"http://127.0.0.1:1/news/" + std::to_string(number) + ".html",
          "2024-01-01T00:00:00Z",
          writer.story(number),
          {{"/news/1.html", writer.title(1)}, {"/news/2.html", writer.title(2)}}};
}

TEST(NewsPage, IsMostlyBoilerplate) {
  for (int64_t number = 0; number < 8; ++number) {
    const Page page = sample(number);
    EXPECT_GT(page_html(page).size(), 3 * page.story.text().size()) << number;
  }
}

TEST(NewsPage, HoldsTitleAddressAndTime) {
  const Page page = sample(1);
  const std::string html = page_html(page);
  for (const std::string& part : {page.story.title, page.url, page.time}) EXPECT_THAT(html, HasSubstr(part));
}

TEST(NewsPage, BoilerplateWordsAreThoseOfNoStory) {
  const std::set<std::string>& boilerplate = boilerplate_words();
  EXPECT_GE(boilerplate.size(), 300U);
  for (const char* word : {"cookies", "newsletter", "subscribe", "javascript", "columnist", "gtag"})
    EXPECT_TRUE(boilerplate.contains(word)) << word;
  EXPECT_FALSE(boilerplate.contains("the"));
  const Writer writer({});
  for (int64_t number = 0; number < 200; ++number)
    for (const auto& [word, count] : count_words(writer.story(number).text()))
      ASSERT_FALSE(boilerplate.contains(word)) << word;
}

TEST(NewsPage, AnExtractorFindsTheStoryInEveryDesign) {
  ArticleExtractor extractor;
  Article article;
  for (int64_t number = 0; number < 16; ++number) {
    const Page page = sample(number);
    extractor.extract(page_html(page), article);
    std::string text;
    for (const std::string& paragraph : page.story.paragraphs) text += paragraph + "\n";
    const auto wanted = count_words(text);
    auto found = count_words(article.text);
    int missing = 0, total = 0, leaked = 0;
    for (const auto& [word, count] : wanted) {
      total += count;
      missing += std::max(0, count - found[word]);
    }
    for (const auto& [word, count] : found) leaked += boilerplate_words().contains(word) ? count : 0;
    EXPECT_LE(missing, total / 50) << number << ": " << article.text;
    EXPECT_LE(leaked, total / 10) << number << ": " << article.text;
  }
}

TEST(NewsPage, EscapesWhatIsMarkup) {
  EXPECT_EQ(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
}

}  // namespace
}  // namespace streamvec::newsroom
