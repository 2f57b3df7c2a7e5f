#include "streamvec/source/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace streamvec {
namespace {

using ::testing::HasSubstr;

RecordFormat format_of(const std::string& settings) {
  const Result<Location> location = Location::parse("test:x?" + settings);
  EXPECT_TRUE(location.ok());
  Result<RecordFormat> format = RecordFormat::from(*location);
  EXPECT_TRUE(format.ok()) << settings << ": " << format.status().message();
  return std::move(format).value();
}

Document read_ok(RecordFormat& format, std::string_view record) {
  Document document;
  const Status status = format.read(record, document);
  EXPECT_TRUE(status.ok()) << record << ": " << status.message();
  return document;
}

Code code_of(RecordFormat& format, std::string_view record) {
  Document document;
  return format.read(record, document).code();
}

TEST(RecordFormat, PlainTextIsTheWholeRecord) {
  RecordFormat format = format_of("");
  EXPECT_EQ(format.kind(), RecordFormat::Kind::kText);
  EXPECT_EQ(read_ok(format, "{\"a\": 1}\n").text, "{\"a\": 1}\n");
}

TEST(RecordFormat, TakesTextIdAndTimeOutOfJson) {
  RecordFormat format = format_of("text=/title,/body&id=/id&time=/created_at");
  const Document document =
      read_ok(format, R"({"id": 17, "body": "b\u00e9\n\"x\"", "title": "t", "created_at": "1970-01-02T00:00:00Z"})");
  EXPECT_EQ(document.text, "t\nb\xc3\xa9\n\"x\"");
  EXPECT_EQ(document.id, "17");
  EXPECT_EQ(document.time_s, 86'400);
  EXPECT_FALSE(document.deleted);
}

TEST(RecordFormat, PointersReachIntoObjectsAndLists) {
  RecordFormat format = format_of("text=/a~1b/m~0n/1/text&id=/did,/commit/rkey");
  const Document document =
      read_ok(format, R"({"did":"did:plc:x","commit":{"rkey":"3k"},"a/b":{"m~n":[{"text":"no"},{"text":"yes"}]}})");
  EXPECT_EQ(document.text, "yes");
  EXPECT_EQ(document.id, "did:plc:x/3k");
}

TEST(RecordFormat, ListsAndNumbersAreText) {
  RecordFormat format = format_of("text=/lines,/n");
  EXPECT_EQ(read_ok(format, R"({"lines":["a","b",["c"],null,{"x":1}],"n":-2.5})").text, "a\nb\nc\n-2.5");
}

TEST(RecordFormat, PartsThatAreMissingAreLeftOut) {
  RecordFormat format = format_of("text=/title,/body&id=/a,/b&time=/t");
  const Document document = read_ok(format, R"({"body":"only","a":"x","t":"soon"})");
  EXPECT_EQ(document.text, "only");
  EXPECT_EQ(document.id, "");
  EXPECT_EQ(document.time_s, 0);
  EXPECT_EQ(code_of(format, R"({"other":"x"})"), Code::kNotFound);
  EXPECT_EQ(code_of(format, R"({"body":null})"), Code::kNotFound);
}

TEST(RecordFormat, TimesAreNumbersOfAnyUnitToo) {
  RecordFormat format = format_of("text=/t&time=/a,/b");
  EXPECT_EQ(read_ok(format, R"({"t":"x","a":1714566600123})").time_s, 1'714'566'600);
  EXPECT_EQ(read_ok(format, R"({"t":"x","b":1714566600.5})").time_s, 1'714'566'600);
}

TEST(RecordFormat, KnowsADeletedRecordByAValueOrByAFlag) {
  RecordFormat by_value = format_of("text=/t&id=/id&delete=/op:delete");
  Document document = read_ok(by_value, R"({"id":"a","op":"delete"})");
  EXPECT_TRUE(document.deleted);
  EXPECT_EQ(document.id, "a");
  EXPECT_EQ(document.text, "");
  EXPECT_FALSE(read_ok(by_value, R"({"id":"a","op":"create","t":"x"})").deleted);
  EXPECT_FALSE(read_ok(by_value, R"({"id":"a","t":"x"})").deleted);
  EXPECT_EQ(code_of(by_value, R"({"op":"delete"})"), Code::kNotFound);
  RecordFormat by_flag = format_of("text=/t&id=/id&delete=/gone");
  EXPECT_TRUE(read_ok(by_flag, R"({"id":"a","gone":true})").deleted);
  EXPECT_TRUE(read_ok(by_flag, R"({"id":"a","gone":"2024"})").deleted);
  for (const char* no : {"false", "null", "0", "\"\""})
    EXPECT_FALSE(read_ok(by_flag, R"({"id":"a","t":"x","gone":)" + std::string(no) + "}").deleted) << no;
}

TEST(RecordFormat, TakesColumnsOutOfTsv) {
  RecordFormat format = format_of("text=3,4&id=2&time=1");
  EXPECT_EQ(format.kind(), RecordFormat::Kind::kTsv);
  const Document document = read_ok(format, "2016-05\tp-1\tA title\tAn abstract, with commas\tmore");
  EXPECT_EQ(document.text, "A title\nAn abstract, with commas");
  EXPECT_EQ(document.id, "p-1");
  EXPECT_EQ(document.time_s, 1'462'060'800);
  EXPECT_EQ(code_of(format, "2016-05\tp-1\tno abstract"), Code::kInvalidArgument);
  EXPECT_EQ(code_of(format, ""), Code::kInvalidArgument);
  EXPECT_EQ(read_ok(format, "\t\t\t").text, "\n");
}

TEST(RecordFormat, BytesThatAreNoUtf8AreReplacedInJson) {
  RecordFormat format = format_of("format=json");
  EXPECT_EQ(read_ok(format, "{\"text\":\"caf\xe9 x\"}").text, "caf\xef\xbf\xbd x");
}

TEST(RecordFormat, AJsonRecordCutAnywhereIsBad) {
  RecordFormat format = format_of("format=json");
  const std::string record = R"({"n":{"a":[1,2.5e3,true,null]},"text":"so\u00e9 \\ much","m":{"x":{}}})";
  EXPECT_EQ(read_ok(format, record).text, "so\xc3\xa9 \\ much");
  for (size_t size = 0; size < record.size(); ++size)
    EXPECT_EQ(code_of(format, record.substr(0, size)), Code::kInvalidArgument) << size;
  EXPECT_EQ(code_of(format, record + record), Code::kInvalidArgument);
  EXPECT_EQ(code_of(format, std::string_view()), Code::kInvalidArgument);
  EXPECT_EQ(read_ok(format, "  " + record + " \r").text, "so\xc3\xa9 \\ much");
}

TEST(RecordFormat, AnyByteAnywhereIsReadOrRefused) {
  RecordFormat json = format_of("format=json&id=/id"), tsv = format_of("text=2&id=1");
  const std::string record = "{\"id\":\"a\t\",\"text\":\"b\\u00e9c\"}";
  Document document;
  for (size_t at = 0; at < record.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = record;
      changed[at] = static_cast<char>(byte);
      for (RecordFormat* format : {&json, &tsv}) {
        const Status status = format->read(changed, document);
        EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument || status.code() == Code::kNotFound);
      }
    }
}

TEST(RecordFormat, DeepNestingAndWrongTypesAreBadNotFatal) {
  RecordFormat format = format_of("text=/a/b&id=/a/0");
  EXPECT_EQ(code_of(format, std::string(1'000'000, '[')), Code::kInvalidArgument);
  EXPECT_EQ(code_of(format, std::string(100'000, '[') + std::string(100'000, ']')), Code::kInvalidArgument);
  for (const char* record : {"7", "\"text\"", "null", "[]", "{}", "{\"a\":7}", "{\"a\":[]}", "{\"a\":{\"b\":{}}}"})
    EXPECT_EQ(code_of(format, record), Code::kNotFound) << record;
}

TEST(RecordFormat, ARecordBeyondTheLimitIsRefusedAndTheNextIsRead) {
  RecordFormat format = format_of("format=json");
  const std::string large = "{\"text\":\"" + std::string(3'000'000, 'x') + "\"}";
  EXPECT_EQ(read_ok(format, large).text.size(), 3'000'000U);
  EXPECT_EQ(code_of(format, "{\"text\":\"" + std::string(kRecordBytesMax, 'x') + "\"}"), Code::kResourceExhausted);
  EXPECT_EQ(read_ok(format, R"({"text":"small"})").text, "small");
}

TEST(RecordFormat, NulsInsideAreKept) {
  RecordFormat format = format_of("format=json");
  EXPECT_EQ(read_ok(format, R"({"text":"a\u0000b"})").text, std::string("a\0b", 3));
  using namespace std::string_view_literals;
  EXPECT_EQ(code_of(format, "{\"text\":\0\"a\"}"sv), Code::kInvalidArgument);
}

TEST(RecordFormat, NamesTheSettingThatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"format=csv", "csv"}, {"text=/a,b", "\"b\""},       {"text=0&format=tsv", "\"0\""},
      {"text=1,x", "\"x\""}, {"format=text&id=/a", "id="}, {"text=/a&delete=/op:d", "needs id="},
      {"text=/a~2", "/a~2"}, {"text=99999", "99999"},      {"text=title", "text="},
      {"text=/a,", "\"\""}};
  for (const auto& [settings, named] : wrong) {
    const Result<RecordFormat> format = RecordFormat::from(*Location::parse(std::string("test:x?") + settings));
    ASSERT_FALSE(format.ok()) << settings;
    EXPECT_EQ(format.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(format.status().message(), HasSubstr(named)) << settings;
  }
}

TEST(RecordFormat, ChecksKeysTogetherWithTheSourcesOwn) {
  const Result<Location> location = Location::parse("test:x?text=/a&subject=b");
  EXPECT_TRUE(RecordFormat::check_keys(*location, {"subject"}).ok());
  const Status status = RecordFormat::check_keys(*location, {"durable"});
  EXPECT_THAT(status.message(), HasSubstr("\"subject\""));
  EXPECT_THAT(status.message(), HasSubstr("durable, format, text"));
}

}  // namespace
}  // namespace streamvec
