#include "streamvec/core/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

TEST(Json, TextThatIsNoneIsDiscarded) {
  for (const std::string_view text : {"", "{", "{\"a\":1", "[1,]", "nan", "\"\xff\"", "{} {}"}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
    EXPECT_TRUE(parse_ordered_json(text).is_discarded()) << text;
  }
  EXPECT_FALSE(parse_json("{").is_object());
}

TEST(Json, OrderedValuesKeepTheOrderOfTheirMembers) {
  const std::string_view text = R"({"b":[1,2.5],"a":"x"})";
  EXPECT_EQ(json_text(parse_ordered_json(text)), text);
  EXPECT_EQ(json_text(parse_json(text)), R"({"a":"x","b":[1,2.5]})");
}

TEST(Json, BytesThatAreNotUtf8AreWrittenAsReplacementCharacters) {
  EXPECT_EQ(json_text(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_text(nlohmann::ordered_json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(Json, AnIndentGivesEveryMemberALine) {
  EXPECT_EQ(json_text(nlohmann::json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

}  // namespace
}  // namespace streamvec
