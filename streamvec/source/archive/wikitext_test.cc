#include "streamvec/source/archive/wikitext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace streamvec {
namespace {

using ::testing::HasSubstr;

std::string text_of(std::string_view wikitext) {
  WikiText wiki;
  wiki.drop_links_to("Datei");
  wiki.drop_links_to("분류");
  std::string out;
  wiki.extract(wikitext, out);
  return out;
}

TEST(WikiText, LinksAreTheirLabels) {
  EXPECT_EQ(text_of("[[Seoul]] and [[South Korea|Korea]]n, [[:Category:Cities]]"),
            "Seoul and Korean, Category:Cities\n");
  EXPECT_EQ(text_of("see [http://a.example/x the page] and [https://b.example] or http://c.example/y?z now"),
            "see the page and or now\n");
  EXPECT_EQ(text_of("a [[Wikipedia:Help|help]] page"), "a help page\n");
}

TEST(WikiText, FilesCategoriesAndOtherLanguagesGo) {
  EXPECT_EQ(text_of("x [[File:A.jpg|thumb|200px|a [[link|caption]] here]] y"), "x y\n");
  EXPECT_EQ(text_of("x [[Datei:A.jpg|mini|über\nzwei Zeilen]] y [[분류:도시]] [[image:b.png]]"), "x y\n");
  EXPECT_EQ(text_of("[[Category:Towns]]\n[[de:Berlin]]\n[[zh-yue:X]]\ntext"), "text\n");
  EXPECT_EQ(text_of("[[Star Trek: Voyager]] and [[2001: A Space Odyssey|2001]]"), "Star Trek: Voyager and 2001\n");
}

TEST(WikiText, TemplatesAndTablesGoHoweverNested) {
  EXPECT_EQ(text_of("{{Infobox|a={{b|{{c}}|[[d|e]]}}\n|f=g\n|}}Text {{cite}} goes (born {{date|1|2}}) on."),
            "Text goes (born ) on.\n");
  EXPECT_EQ(
      text_of("Before\n{| class=\"wikitable\"\n! head\n|-\n| cell || {{x|\n|}} cell\n{| inner\n| deep\n|}\n|}\nAfter"),
      "Before\nAfter\n");
  EXPECT_EQ(text_of("Seoul ({{lang|ko|서울}}) is ( ) big"), "Seoul is big\n");
}

TEST(WikiText, WhatIsNeverClosedIsText) {
  EXPECT_THAT(text_of("a {{b c d"), HasSubstr("b c d"));
  EXPECT_THAT(text_of("a [[b c\nd e]] f"), HasSubstr("d e"));
  EXPECT_THAT(text_of("a <ref>b c"), HasSubstr("b c"));
  EXPECT_THAT(text_of("a <!-- b c"), HasSubstr("b c"));
  EXPECT_EQ(text_of("a }} b ]] c"), "a }} b c\n");
}

TEST(WikiText, ReferencesFormulasAndCommentsGo) {
  EXPECT_EQ(text_of("a<ref name=\"x\">{{cite|y}} z</ref> b<ref name=x /> c<!-- d\n e --> f <math>\\frac{a}{b}</math>g"),
            "a b c f g\n");
  EXPECT_EQ(text_of("<gallery>\nA.jpg|one\nB.jpg|two\n</gallery>text<SyntaxHighlight lang=c>int x;</syntaxhighlight>"),
            "text\n");
}

TEST(WikiText, TagsGoAndTheirTextStays) {
  EXPECT_EQ(text_of("<div class=\"x\">one<br/>two <b>three</b></div><small>four</small>"), "one\ntwo three\nfour\n");
  EXPECT_EQ(text_of("3 < 4 and 5 > 2 <3"), "3 < 4 and 5 > 2 <3\n");
}

TEST(WikiText, HeadingsListsAndEmphasisLoseTheirMarks) {
  EXPECT_EQ(
      text_of("== History ==\n'''Bold''' and ''it'''s'' l'eau\n* one\n** two\n# three\n:; four\n----\n__NOTOC__ five"),
      "History\nBold and its l'eau\none\ntwo\nthree\nfour\nfive\n");
}

TEST(WikiText, NowikiStaysAsItIsAndReferencesAreDecoded) {
  EXPECT_EQ(text_of("<nowiki>[[not]] {{this}} ''x''</nowiki> &amp; &lt;b&gt; A&nbsp;B &#8212; &copy=1"),
            "[[not]] {{this}} ''x'' & <b> A B \xe2\x80\x94 &copy=1\n");
}

TEST(WikiText, EveryCutAndEveryByteIsReadToItsEnd) {
  const std::string page =
      "{{I|a=[[b|c]]}}\n'''X''' <ref>r</ref> [[File:a|b]] {|\n|-\n|}\n<!-- c --> &amp; [http://a b] <nowiki>n</nowiki> "
      "__A__";
  for (size_t at = 0; at <= page.size(); ++at) {
    (void)text_of(page.substr(0, at));
    (void)text_of(page.substr(at));
    for (const char byte : {'\0', '{', '}', '[', ']', '|', '<', '>', '&', '\n', '\xff', '\''}) {
      std::string changed = page;
      if (at < page.size()) changed[at] = byte;
      (void)text_of(changed);
    }
  }
}

TEST(WikiText, MegabytesOfNestingWithoutEndAreReadToTheirEnd) {
  for (const std::string part : {"{{", "[[", "{{[[", "\n{|", "<ref>", "<!--", "<", "[[a|", "[http://x ", "''", "}}",
                                 "]]", "\n|}", "<nowiki>", "&", "__A", "[[File:a|", "<math><ref>"}) {
    std::string page;
    while (page.size() < 2'000'000) page += part;
    (void)text_of(page);
  }
}

}  // namespace
}  // namespace streamvec
