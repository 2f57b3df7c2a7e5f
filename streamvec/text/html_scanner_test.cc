// Tags and text out of tag soup.
#include "streamvec/text/html_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/text/html_entities.h"

namespace streamvec {
namespace {

using testing::ElementsAre;

// "text", "<name", "</name".
std::vector<std::string> html_tokens(std::string_view html) {
  std::vector<std::string> out;
  HtmlScanner scanner(html);
  HtmlToken token;
  for (scanner.next(token); token.kind != HtmlToken::Kind::kDone; scanner.next(token)) {
    if (token.kind == HtmlToken::Kind::kText) out.emplace_back(token.text);
    if (token.kind == HtmlToken::Kind::kStart) out.push_back("<" + std::string(token.name));
    if (token.kind == HtmlToken::Kind::kEnd) out.push_back("</" + std::string(token.name));
  }
  return out;
}

HtmlToken first_token(std::string_view html) {
  HtmlScanner scanner(html);
  HtmlToken token;
  scanner.next(token);
  return token;
}

std::string decoded(std::string_view text) {
  std::string out;
  append_decoded(text, out);
  return out;
}

TEST(HtmlScanner, GivesTagsAndTextInOrder) {
  EXPECT_THAT(html_tokens("a<p>b<br/>c</P >d"), ElementsAre("a", "<p", "b", "<br", "c", "</P", "d"));
}

TEST(HtmlScanner, ALessThanSignThatStartsNoTagIsText) {
  EXPECT_THAT(html_tokens("1 <2 < 3<p>"), ElementsAre("1 ", "<2 ", "< 3", "<p"));
  EXPECT_THAT(html_tokens("x<"), ElementsAre("x", "<"));
}

TEST(HtmlScanner, PassesOverCommentsDoctypesAndCdata) {
  EXPECT_THAT(html_tokens("<!DOCTYPE html>a<!-- <p> -- > x -->b<!-->c<![CDATA[ <p> ]]>d<?xml ?>e</>f"),
              ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST(HtmlScanner, ReadsAttributesInEveryQuoting) {
  const HtmlToken token = first_token("<DIV Class='a > b' ID=main hidden data-x=\"class='no'\" class=second>");
  EXPECT_EQ(token.tag, Tag::kDiv);
  EXPECT_EQ(token.value(Attribute::kClass), "a > b");
  EXPECT_EQ(token.value(Attribute::kId), "main");
  EXPECT_TRUE(token.has(Attribute::kHidden));
  EXPECT_FALSE(token.has(Attribute::kStyle));
}

TEST(HtmlScanner, AQuoteInsideAnAttributeNameOpensNothing) {
  EXPECT_THAT(html_tokens("<p it's>a</p>b's"), ElementsAre("<p", "a", "</p", "b's"));
}

TEST(HtmlScanner, ScriptsAreHandedOverWholeAndNotReadAsTags) {
  const HtmlToken token = first_token("<script type=x>if (a<b) '</p>' </scripty></SCRIPT >after");
  EXPECT_EQ(token.text, "if (a<b) '</p>' </scripty>");
  EXPECT_THAT(html_tokens("<style>a<p></style>b<textarea><p></textarea>c"),
              ElementsAre("<style", "b", "<textarea", "c"));
}

TEST(HtmlScanner, WhatNeverClosesCostsOnlyItself) {
  EXPECT_THAT(html_tokens("<svg><p>a"), ElementsAre("<svg", "<p", "a"));
  EXPECT_THAT(html_tokens("<svg/>a"), ElementsAre("<svg", "a"));
  EXPECT_THAT(html_tokens("<!-- a>b"), ElementsAre("b"));
  EXPECT_THAT(html_tokens("<p class=\"a>b"), ElementsAre("<p", "b"));
  EXPECT_THAT(html_tokens("a<script>b<p>"), ElementsAre("a", "<script"));
}

TEST(HtmlScanner, ATagCutByTheEndIsDropped) {
  EXPECT_THAT(html_tokens("a<p class"), ElementsAre("a"));
  EXPECT_THAT(html_tokens("a</p"), ElementsAre("a"));
}

TEST(HtmlTags, NamesAreKnownInAnyCaseAndHyphensAreCustom) {
  EXPECT_EQ(find_tag("BlockQuote"), Tag::kBlockquote);
  EXPECT_EQ(find_tag("h6"), Tag::kH6);
  EXPECT_EQ(find_tag("h7"), Tag::kOther);
  EXPECT_EQ(find_tag("amp-sidebar"), Tag::kCustom);
  for (int i = 2; i < kTagCount; ++i) EXPECT_EQ(find_tag(tag_name(static_cast<Tag>(i))), static_cast<Tag>(i));
}

TEST(HtmlEntities, NamesAndNumbersAreDecoded) {
  EXPECT_EQ(decoded("a&amp;b &lt;&gt; &eacute;&Eacute; &hellip;&nbsp;&#8217;&#x2019;"), "a&b <> éÉ …\u00A0’’");
  EXPECT_EQ(decoded("&thetasym;&Dagger;&lstrok;"), "ϑ‡ł");
}

TEST(HtmlEntities, OldNamesNeedNoSemicolonAndUnknownOnesStay) {
  EXPECT_EQ(decoded("&copy2024 &ampx AT&T &hellipx &foo; & &; &#; &#x;"), "©2024 &x AT&T &hellipx &foo; & &; &#; &#x;");
}

TEST(HtmlEntities, NumbersThatAreNoCharacterAreMended) {
  EXPECT_EQ(decoded("&#0;&#xD800;&#x110000;&#99999999999999;"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(decoded("&#146;&#151;"), "’—");  // Windows-1252
}

}  // namespace
}  // namespace streamvec
