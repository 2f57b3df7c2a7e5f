#include "streamvec/serve/call_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace streamvec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

CallArguments of_query(std::vector<NameAndText> query) {
  HttpRequest request;
  request.method = "GET";
  request.query = std::move(query);
  return CallArguments::of(request).value();
}

Result<CallArguments> of_body(std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.body = std::move(body);
  return CallArguments::of(request);
}

TEST(CallArguments, AreReadByTheSameNamesFromAddressAndBody) {
  for (const CallArguments& arguments :
       {of_query({{"word", "king"}, {"k", "7"}}), of_body(R"({"word":"king","k":7})").value()}) {
    EXPECT_EQ(arguments.text("word").value(), "king");
    EXPECT_EQ(arguments.integer("k", 10, 1, 100).value(), 7);
    EXPECT_EQ(arguments.integer("limit", 10, 1, 100).value(), 10);
    EXPECT_THAT(arguments.texts("word").value(), ElementsAre("king"));
  }
}

TEST(CallArguments, HaveNumbersInTheirRangeOnly) {
  for (const char* text : {"0", "101", "x", "", "1.5", "7x", "99999999999999999999"})
    EXPECT_FALSE(of_query({{"k", text}}).integer("k", 10, 1, 100).ok()) << text;
  for (const char* json : {"0", "101", "\"7\"", "1.5", "null", "[7]", "99999999999999999999"})
    EXPECT_FALSE(of_body(std::string("{\"k\":") + json + "}").value().integer("k", 10, 1, 100).ok()) << json;
}

TEST(CallArguments, OfTheWrongKindAreErrorsAlsoWhereTheyMayBeLeftOut) {
  EXPECT_EQ(of_query({}).text_or("prefix", "x").value(), "x");
  EXPECT_FALSE(of_query({{"prefix", "a"}, {"prefix", "b"}}).text_or("prefix", "").ok());
  for (const char* json : {"5", "[\"a\"]", "null"})
    EXPECT_FALSE(of_body(std::string("{\"prefix\":") + json + "}").value().text_or("prefix", "").ok()) << json;
}

TEST(CallArguments, NameAMomentByATextOrAStep) {
  EXPECT_EQ(of_query({}).moment("from").value(), "");
  EXPECT_EQ(of_query({{"from", "36"}}).moment("from").value(), "36");
  EXPECT_EQ(of_body(R"({"from":36})").value().moment("from").value(), "36");
  EXPECT_EQ(of_body(R"({"from":"2024-05-01"})").value().moment("from").value(), "2024-05-01");
  EXPECT_FALSE(of_body(R"({"from":[36]})").value().moment("from").ok());
}

TEST(CallArguments, GiveWordsTheirWeights) {
  const auto typed = of_body(R"({"words":["a:1",{"word":"b","weight":-0.5},{"word":"c"}]})").value();
  const auto words = typed.weighted_words("words").value();
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0].word, "a:1");
  EXPECT_EQ(words[1].weight, -0.5);
  EXPECT_EQ(words[2].weight, 1);
  const auto plain = of_query({{"words", "a"}, {"words", "b:-0.5"}, {"words", "c:d"}, {"words", ":7"}});
  const auto others = plain.weighted_words("words").value();
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(others[1].word, "b");
  EXPECT_EQ(others[1].weight, -0.5);
  EXPECT_EQ(others[2].word, "c:d");
  EXPECT_EQ(others[3].word, ":7");
}

TEST(CallArguments, RefuseBodiesThatAreNoObject) {
  for (const char* body : {"", "[]", "1", "null", "{", "{\"a\":1}{}", "\xff"})
    EXPECT_EQ(of_body(body).status().code(), Code::kInvalidArgument) << body;
}

TEST(CallArguments, NameWhatIsNotThere) {
  EXPECT_THAT(of_query({}).text("word").status().message(), HasSubstr("word is missing"));
  EXPECT_THAT(of_query({{"wrod", "x"}}).only({"k", "word"}).message(), HasSubstr("wrod"));
  EXPECT_TRUE(of_query({{"word", "x"}}).only({"k", "word"}).ok());
  for (const char* name : {"vector", "words", "pairs"}) {
    EXPECT_FALSE(of_query({}).numbers(name).ok());
    EXPECT_FALSE(of_query({}).weighted_words(name).ok());
    EXPECT_FALSE(of_query({}).pairs(name).ok());
  }
}

TEST(CallArguments, TakeFiniteNumbersAndPairs) {
  const auto arguments =
      of_body(R"({"vector":[1,-2.5],"bad":[1,"x"],"huge":[1e300],"pairs":[["a","b"]],"odd":[["a"]]})").value();
  EXPECT_THAT(arguments.numbers("vector").value(), ElementsAre(1.0f, -2.5f));
  EXPECT_FALSE(arguments.numbers("bad").ok());
  EXPECT_FALSE(arguments.numbers("huge").ok());
  EXPECT_THAT(arguments.pairs("pairs").value(), ElementsAre(Pair("a", "b")));
  EXPECT_FALSE(arguments.pairs("odd").ok());
}

}  // namespace
}  // namespace streamvec
