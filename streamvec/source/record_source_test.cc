#include "streamvec/source/record_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts_of(Source& source) {
  const Result<std::vector<Document>> documents = read_all(source, 100);
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  std::vector<std::string> texts;
  for (const Document& document : *documents) texts.push_back(document.text);
  return texts;
}

// JSON lines of very different lengths, some longer than a piece.
std::string sample_records(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "{\"id\":" + std::to_string(i) + ",\"text\":\"record " + std::to_string(i) + " " +
             std::string(static_cast<size_t>(i % 50 == 49 ? 150'000 : i % 7 * 400), 'x') + "\"}\n";
  return lines;
}

TEST(RecordSource, GivesADocumentForEachLine) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a.jsonl",
                                           "{\"title\":\"A\",\"body\":\"x\",\"id\":\"1\",\"date\":\"2024-05\"}\r\n"
                                           "\n{\"title\":\"B\",\"id\":2}");
  const auto source = open_ok<RecordSource>("jsonl:" + path + "?text=/title,/body&id=/id&time=/date");
  const std::vector<Document> documents = read_all(*source, 7).value();
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].text, "A\nx");
  EXPECT_EQ(documents[0].id, "1");
  EXPECT_EQ(documents[0].time_s, 1'714'521'600);
  EXPECT_EQ(documents[1].text, "B");
  EXPECT_EQ(documents[1].id, "2");
  EXPECT_FALSE(source->capabilities().endless);
  EXPECT_TRUE(source->capabilities().replayable);
}

TEST(RecordSource, ReadsTsvWithAHeaderInEachFile) {
  TemporaryDirectory directory;
  directory.write("d/a.tsv", "date\tid\ttext\n2024-05\t1\tone\n");
  directory.write("d/b.tsv.xz", xz_bytes("date\tid\ttext\n2024-05\t2\ttwo"));
  const auto source = open_ok<RecordSource>("tsv:" + directory.path("d") + "?text=3&id=2&time=1&header=1");
  EXPECT_THAT(texts_of(*source), ElementsAre("one", "two"));
  const auto with_names = open_ok<RecordSource>("tsv:" + directory.path("d") + "?text=3");
  EXPECT_THAT(texts_of(*with_names), ElementsAre("text", "one", "text", "two"));
}

TEST(RecordSource, GoesOnAfterAnyDocumentExactlyAsIfNeverStopped) {
  TemporaryDirectory directory;
  const std::string lines = sample_records(120);
  directory.write("d/a.jsonl", "\xef\xbb\xbf" + lines);
  directory.write("d/b.jsonl.gz", gzip_bytes(lines.substr(0, lines.size() - 1)));
  directory.write("d/c.jsonl", "");
  directory.write("d/e.jsonl.zst", zstd_bytes("{\"text\":\"header\"}\n" + lines));
  for (const std::string& name : {"jsonl:" + directory.path("d"), "tsv:" + directory.path("d") + "?header=1"}) {
    const auto whole = open_ok<RecordSource>(name);
    std::vector<Document> documents;
    std::vector<int64_t> bytes_read;
    while (whole->read(1, Deadline::never(), documents).value() > 0) bytes_read.push_back(whole->bytes_read());
    ASSERT_GE(documents.size(), 357U);
    for (size_t stop = 0; stop < documents.size(); stop += stop < 240 && stop > 3 ? 9 : 1) {
      const auto resumed = open_ok<RecordSource>(name);
      const Status status = resumed->seek(whole->saved(documents[stop].cursor));
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]) << stop;
      std::vector<Document> rest;
      for (size_t i = stop + 1; i < std::min(stop + 5, documents.size()); ++i) {
        ASSERT_EQ(resumed->read(1, Deadline::never(), rest).value(), 1);
        ASSERT_EQ(rest.back().text, documents[i].text) << stop << " " << i;
        ASSERT_EQ(rest.back().cursor, documents[i].cursor);
        ASSERT_EQ(resumed->bytes_read(), bytes_read[i]);
      }
      if (stop + 5 < documents.size()) continue;
      EXPECT_EQ(resumed->read(1, Deadline::never(), rest).value(), 0);
    }
  }
}

TEST(RecordSource, BadRecordsAreCountedAndNoted) {
  TemporaryDirectory directory;
  const std::string path =
      directory.write("a", "{\"text\":\"one\"}\n{\"text\":\n[1\n{\"other\":1}\n{\"text\":\"" +
                               std::string(kRecordBytesMax, 'x') + "\"}\n{\"text\":\"two\"}\n{\"text\":\"cut of");
  const auto source = open_ok<RecordSource>("jsonl:" + path);
  EXPECT_THAT(texts_of(*source), ElementsAre("one", "two"));
  EXPECT_THAT(source->notes(),
              ElementsAre(HasSubstr("4 of 7 records are bad"), HasSubstr("1 of 7 records have no text")));
  ASSERT_TRUE(source->seek("").ok());
  EXPECT_THAT(texts_of(*source), ElementsAre("one", "two"));
  EXPECT_THAT(source->notes()[0], HasSubstr("4 of 7"));
}

TEST(RecordSource, NothingButBadRecordsIsAnErrorThatSaysWhy) {
  TemporaryDirectory directory;
  const auto source = open_ok<RecordSource>("jsonl:" + directory.write("a", "plain text\nmore\n"));
  const Status status = read_all(*source).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("not JSON"));
  const auto wrong = open_ok<RecordSource>("jsonl:" + directory.write("b", "{\"body\":1}\n") + "?text=/title");
  EXPECT_THAT(read_all(*wrong).status().message(), HasSubstr("/title is not there"));
}

TEST(RecordSource, ASourceSoughtToItsEndIsJustAtItsEnd) {
  TemporaryDirectory directory;
  const std::string name = "jsonl:" + directory.write("a", "{\"text\":\"one\"}\n");
  const std::vector<Document> documents = read_all(*open_ok<RecordSource>(name)).value();
  const auto source = open_ok<RecordSource>(name);
  ASSERT_TRUE(source->seek(documents[0].cursor).ok());
  EXPECT_TRUE(read_all(*source).value().empty());
}

TEST(RecordSource, RefusesACursorOfAnotherOrChangedFile) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
  const auto source = open_ok<RecordSource>("jsonl:" + path);
  const std::string cursor = read_all(*source).value()[0].cursor;
  for (const char* bad : {"x", "7", "0 x", "-1 ", "99999999999999999999999 ", "1 {}"})
    EXPECT_EQ(source->seek(bad).code(), Code::kInvalidArgument) << bad;
  EXPECT_EQ(source->seek("999 ").code(), Code::kFailedPrecondition);
  EXPECT_TRUE(source->seek(cursor).ok());
  directory.write("a", "{\"text\":\"other\"}\n");
  EXPECT_EQ(open_ok<RecordSource>("jsonl:" + path)->seek(cursor).code(), Code::kFailedPrecondition);
}

TEST(RecordSource, NamesWhatIsWrongWithItsName) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a", "x");
  for (const std::string& name : {std::string("jsonl:"), "jsonl:" + path + "?colour=1", "jsonl:" + path + "?header=1",
                                  "jsonl:" + path + "?text=title", "tsv:" + path + "?text=/a", "jsonl://host" + path})
    EXPECT_EQ(RecordSource::open(name).status().code(), Code::kInvalidArgument) << name;
  EXPECT_EQ(RecordSource::open("jsonl:" + path + ".typo").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace streamvec
