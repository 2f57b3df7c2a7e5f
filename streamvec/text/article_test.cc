// What the extractor keeps, what it leaves out, and what it reads from the head of a page.
#include "streamvec/text/article.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "streamvec/text/class_words.h"
#include "streamvec/text/title_text.h"

namespace streamvec {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kFirst = "The first paragraph is long enough to be taken for prose, and it has a comma as well.";
const std::string kSecond = "The second paragraph goes on for a while too, so that nobody can doubt what it is.";

Article extract(const std::string& html) {
  Article article;
  ArticleExtractor().extract(html, article);
  return article;
}

std::string text_around(const std::string& inner) {
  return extract("<body><div class=x><p>" + kFirst + "</p>" + inner + "<p>" + kSecond + "</p></div>").text;
}

// `inner` adds these lines between the two paragraphs.
void expect_between(const std::string& inner, const std::string& lines) {
  EXPECT_EQ(text_around(inner), kFirst + "\n" + lines + kSecond) << inner;
}

TEST(Article, ParagraphsComeOneALine) {
  expect_between("", "");
}

TEST(Article, SubHeadingsListsQuotationsAndCodeStay) {
  expect_between("<h2>On  lists</h2><ul><li>One<li>Two</ul>", "On lists\nOne\nTwo\n");
  expect_between("<blockquote>Said <b>somebody</b> else</blockquote>", "Said somebody else\n");
  expect_between("<pre>let a\n  = 1;\n\nb</pre>", "let a\n= 1;\nb\n");
}

TEST(Article, TheCellsOfATableRowShareALine) {
  expect_between("<table><tr><th>Name<th>Age<tr><td>Ann<td>41</table>", "Name Age\nAnn 41\n");
}

TEST(Article, TwoBreaksEndAParagraphAndOneDoesNot) {
  expect_between("<div>Here it starts<br>and goes on<br><br>and here is more</div>",
                 "Here it starts and goes on\nand here is more\n");
}

TEST(Article, ReferencesAreDecodedAndWhiteSpaceCollapses) {
  expect_between("<p>caf&eacute;&nbsp;&amp;\n\n\t bar&shy;rel &#x1F600;</p>", "café & barrel 😀\n");
}

TEST(Article, InlineTagsDoNotPartWords) {
  expect_between("<p>un<b>believ</b>able</p>", "unbelievable\n");
}

TEST(Article, CaptionsFootnoteMarksAndRubyReadingsAreLeftOut) {
  expect_between("<figure><img><figcaption>A bird. Photo: me</figcaption></figure>", "");
  expect_between("<p>Known since 1820<sup class=\"reference\"><a href=#n>[1]</a></sup>.</p>", "Known since 1820.\n");
  expect_between("<p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字</p>", "漢字\n");
}

TEST(Article, WhatIsNotShownIsLeftOut) {
  for (const char* hidden :
       {"<p hidden>", "<p style='color:red;display: none'>", "<p aria-hidden=true>", "<p class=sr-only>", "<noscript>",
        "<template>", "<svg><text>", "<textarea>", "<script>", "<style>", "<select><option>", "<button>", "<iframe>"}) {
    const std::string open = hidden;
    const std::string name = open.substr(1, open.find_first_of(" >") - 1);
    expect_between(open + "unseen words, quite a few of them, and more.</" + name + ">", "");
  }
}

TEST(Article, NavigationAndItsKinAreLeftOut) {
  const std::string junk = "<p>These are words that look like prose, long enough, and even with commas.</p>";
  for (const char* open :
       {"<nav>", "<footer>", "<aside>", "<div class=related-posts>", "<div id=comments>", "<div class='social share'>",
        "<section class=\"newsletter-signup\">", "<div class=cookieBanner>", "<div role=navigation>",
        "<div class=\"post__author-bio authorBox\">", "<ul class=breadcrumbs>", "<amp-sidebar>",
        "<div class=sidebar>"}) {
    const std::string tag = open;
    const std::string name = tag.substr(1, tag.find_first_of(" >") - 1);
    expect_between(tag + junk + "</" + name + ">", "");
  }
}

TEST(Article, ListsOfLinksAndStockPhrasesAreLeftOut) {
  expect_between("<ul><li><a href=/a>Another story of the day</a><li><a href=/b>And one more</a></ul>", "");
  expect_between("<p>Advertisement</p><p><a href=/x>Read more: what happened then</a></p><p>Share this article</p>",
                 "");
}

TEST(Article, LinksWithinThePageAreText) {
  expect_between("<p><a href=#part2>See the second part of this page</a></p>", "See the second part of this page\n");
}

TEST(Article, AHeadingWithNothingUnderItIsLeftOut) {
  EXPECT_THAT(extract("<div><p>" + kFirst + "</p><p>" + kSecond + "</p><h2>Related</h2></div>").text,
              Not(HasSubstr("Related")));
}

TEST(Article, NamesThatDenyOrDescribeThePageSayNothingAboutIt) {
  EXPECT_EQ(class_evidence("has-sidebar no-comments") & (evidence::kJunk | evidence::kComments), 0);
  EXPECT_EQ(class_evidence("sharing-with-a-single-developer"), 0);
  EXPECT_NE(class_evidence("relatedPosts") & evidence::kJunk, 0);
  EXPECT_NE(class_evidence("article__body") & evidence::kBody, 0);
  EXPECT_NE(class_evidence("post-comments") & evidence::kComments, 0);
  EXPECT_EQ(class_evidence("post-comments") & evidence::kRich, 0);
}

TEST(Article, APageInsideAFormOrAnUnluckyNameStillHasItsText) {
  const std::string prose = "<p>" + kFirst + "</p><p>" + kSecond + "</p>";
  EXPECT_EQ(extract("<body><form><input name=a>" + prose + "</form>").text, kFirst + "\n" + kSecond);
  EXPECT_EQ(extract("<body><div class=comments>" + prose + "</div>").text, kFirst + "\n" + kSecond);
  EXPECT_EQ(extract("<body><div class=sidebar-layout>" + prose + "</div>").text, kFirst + "\n" + kSecond);
}

TEST(Article, ChaptersOfDifferentDepthAreOneArticle) {
  std::string html = "<body><main><div>";
  for (int i = 0; i < 40; ++i) html += "<p>" + kFirst + "</p>";
  html += "</div><section><div><div><div>";
  for (int i = 0; i < 3; ++i) html += "<p>" + kSecond + "</p>";
  EXPECT_THAT(extract(html).text, HasSubstr(kFirst + "\n" + kSecond + "\n" + kSecond));
}

TEST(Article, APageOfOneShortLineKeepsIt) {
  EXPECT_EQ(extract("<body><p>Back soon</p>").text, "Back soon");
}

TEST(Article, TextFromJsonLdStandsInWhenThePageIsWrittenByScripts) {
  const Article article =
      extract(R"(<script type="application/ld+json">{"@type":"NewsArticle","note":"\"articleBody\":","articleBody":)"
              R"("One \u00e9.\n\n<p>Two &amp; \ud83d\ude00</p>"}</script><div id=root></div>)");
  EXPECT_EQ(article.text, "One é.\nTwo & 😀");
}

TEST(Article, TheTitleLosesTheNameOfTheSite) {
  EXPECT_EQ(extract("<title>A long story of rain &amp; sun | The Post</title>").title, "A long story of rain & sun");
  EXPECT_EQ(choose_title("", "Rain - The Post", "", "The Post"), "Rain");
  EXPECT_EQ(choose_title("", "The Post: Rain", "", ""), "The Post: Rain");
  EXPECT_EQ(choose_title("", "Rain ends long drought - Valley Courier", "Rain ends long drought", ""),
            "Rain ends long drought");
  EXPECT_EQ(choose_title("Rain ends", "x", "Other heading", ""), "Rain ends");
  EXPECT_EQ(choose_title("", "", "Only heading", ""), "Only heading");
}

TEST(Article, TheTitleIsNotPartOfTheText) {
  EXPECT_EQ(extract("<title>A story - Site</title><body><article><h1>A story</h1><p>" + kFirst + "</p></article>").text,
            kFirst);
}

TEST(Article, ReadsLanguageAddressAndDate) {
  const Article article = extract(
      "<html lang='KO-kr'><meta property=og:url content=/b><link rel=Canonical href='https://x.example/a?b=1&amp;c=2'>"
      "<time datetime=2020-01-01></time><meta property='article:published_time' content='2024-05-01T09:00:00+09:00'>");
  EXPECT_EQ(article.language, "ko");
  EXPECT_EQ(article.canonical, "https://x.example/a?b=1&c=2");
  EXPECT_EQ(article.time_s, 1'714'521'600);
}

TEST(Article, DatesAreTakenInOrderOfTrust) {
  const std::string time = "<time datetime=2024-05-04>",
                    item = "<span itemprop=datePublished content=2024-05-03></span>",
                    json = "<script type='application/ld+json'>{\"datePublished\" : \"2024-05-02\"}</script>";
  EXPECT_EQ(extract(time + item + json).time_s, 1'714'521'600 + 86'400);
  EXPECT_EQ(extract(time + item).time_s, 1'714'521'600 + 2 * 86'400);
  EXPECT_EQ(extract(time).time_s, 1'714'521'600 + 3 * 86'400);
  EXPECT_EQ(extract("<p>no date").time_s, 0);
}

TEST(Article, AnExtractorCarriesNothingFromOnePageToTheNext) {
  ArticleExtractor extractor;
  Article article;
  extractor.extract("<html lang=en><title>One two three</title><p>" + kFirst, article);
  extractor.extract("", article);
  EXPECT_EQ(article.title + article.text + article.language + article.canonical, "");
  EXPECT_EQ(article.time_s, 0);
}

}  // namespace
}  // namespace streamvec
