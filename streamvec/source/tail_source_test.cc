#include "streamvec/source/tail_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/source/piece.h"
#include "streamvec/source/testing_documents.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

// Waits for `count` documents, and a moment for one too many.
std::vector<std::string> awaited(Source& source, size_t count) {
  std::vector<Document> documents;
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (documents.size() < count && source.read(100, deadline, documents).ok()) continue;
  (void)source.read(100, Deadline::after(std::chrono::milliseconds(20)), documents).ok();
  return texts(documents);
}

std::string record(int number) {
  return "{\"text\":\"line " + std::to_string(number) + "\"}\n";
}

TEST(TailSource, HandsOutWholeLinesAsTheyCome) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", "one\ntwo\nthr");
  const auto source = open_ok<TailSource>("tail:" + path);
  EXPECT_EQ(joined(drained(*source)), "one\ntwo\n");
  append(path, "ee\nfour");
  EXPECT_EQ(joined(drained(*source)), "three\n");
  append(path, "\n");
  EXPECT_EQ(joined(drained(*source)), "four\n");
  EXPECT_TRUE(source->capabilities().endless);
}

TEST(TailSource, WakesWhenALineIsWritten) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", "");
  const auto source = open_ok<TailSource>("tail:" + path);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    append(path, "late\n");
  });
  std::vector<Document> documents;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::seconds(20)), documents).value(), 1);
  writer.join();
}

TEST(TailSource, FromEndLeavesOutWhatIsThere) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", "old\nhalf");
  const auto source = open_ok<TailSource>("tail:" + path + "?from=end");
  EXPECT_THAT(drained(*source), IsEmpty());
  append(path, " a line\nnew\n");
  EXPECT_EQ(joined(drained(*source)), "new\n");
}

TEST(TailSource, WaitsForAFileThatIsNotThereYet) {
  TemporaryDirectory directory;
  const auto source = open_ok<TailSource>("tail:" + directory.path("log") + "?from=end");
  EXPECT_THAT(drained(*source), IsEmpty());
  directory.write("log", "first\n");
  EXPECT_EQ(joined(drained(*source, 300)), "first\n");
}

TEST(TailSource, ReadsRecords) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1) + "\n{bad\n{\"other\":1}\r\n" + record(2));
  const auto source = open_ok<TailSource>("tail:" + path + "?format=json");
  EXPECT_THAT(texts(drained(*source)), ElementsAre("line 1", "line 2"));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("1 of 4 records are bad"), HasSubstr("1 of 4 records have no")));
}

TEST(TailSource, FollowsARenamedFileAndItsSuccessor) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1));
  const auto source = open_ok<TailSource>("tail:" + path + "?format=json");
  EXPECT_EQ(drained(*source).size(), 1U);
  append(path, record(2));
  fs::rename(path, path + ".1");
  append(path + ".1", record(3));  // the writer has not noticed yet
  directory.write("log", record(5));
  append(path + ".1", "{\"text\":\"line 4\"}");  // its last line has no end
  EXPECT_THAT(awaited(*source, 4), ElementsAre("line 2", "line 3", "line 4", "line 5"));
  append(path, record(6));
  EXPECT_THAT(texts(drained(*source)), ElementsAre("line 6"));
  EXPECT_THAT(source->notes(), IsEmpty());
}

TEST(TailSource, FollowsAFileThatIsCopiedAndCut) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1) + "{\"text\":");
  const auto source = open_ok<TailSource>("tail:" + path + "?format=json");
  EXPECT_EQ(drained(*source).size(), 1U);
  append(path, "\"line 2\"}\n" + record(3));  // not read before it is cut
  fs::copy_file(path, path + ".1");
  fs::resize_file(path, 0);
  append(path, record(4));
  EXPECT_THAT(awaited(*source, 3), ElementsAre("line 2", "line 3", "line 4"));
  EXPECT_THAT(source->notes(), IsEmpty());
}

TEST(TailSource, NoticesACutEvenWhenTheFileHasGrownPastItsPlaceSince) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1));
  const auto source = open_ok<TailSource>("tail:" + path + "?format=json");
  EXPECT_EQ(drained(*source).size(), 1U);
  fs::resize_file(path, 0);
  append(path, record(2) + record(3) + record(4));
  EXPECT_THAT(texts(drained(*source)), ElementsAre("line 2", "line 3", "line 4"));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("cut to nothing")));
}

TEST(TailSource, GoesOnAfterAnyDocument) {
  TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 40; ++i) text += record(i);
  const std::string name = "tail:" + directory.write("log", text) + "?format=json";
  const auto whole = open_ok<TailSource>(name);
  const std::vector<Document> documents = drained(*whole);
  ASSERT_EQ(documents.size(), 40U);
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const auto resumed = open_ok<TailSource>(name);
    ASSERT_TRUE(resumed->seek(whole->saved(documents[stop].cursor)).ok());
    const std::vector<Document> rest = drained(*resumed, 1);
    ASSERT_EQ(rest.size(), 39 - stop);
    for (size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i].cursor, documents[stop + 1 + i].cursor);
  }
}

// Every way in which the file may have been rotated while nobody read.
class TailAfterRestart : public ::testing::TestWithParam<size_t> {};

TEST_P(TailAfterRestart, FindsItsPlaceAgain) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1) + record(2));
  const std::string name = "tail:" + path + "?format=json";
  const std::string cursor = drained(*open_ok<TailSource>(name)).at(0).cursor;
  append(path, record(3));
  const auto later = [&](const std::string& file, int seconds) {
    fs::last_write_time(file, fs::last_write_time(path) + std::chrono::seconds(seconds));
  };
  const std::vector<std::function<void()>> rotations = {
      [&] {  // none
        append(path, record(4));
      },
      [&] {  // renamed
        fs::rename(path, path + ".1");
        directory.write("log", record(4));
      },
      [&] {  // renamed twice
        fs::rename(path, path + ".2");
        directory.write("log.1", "");
        directory.write("log", record(4));
        later(path + ".2", -10), later(path + ".1", -5);
      },
      [&] {  // renamed with a date, then compressed
        directory.write("log-20240501.gz", gzip_bytes(record(1) + record(2) + record(3)));
        fs::remove(path);
        directory.write("log", record(4));
        later(path + "-20240501.gz", -10);
      },
      [&] {  // copied and cut
        fs::copy_file(path, path + ".1");
        fs::resize_file(path, 0);
        append(path, record(4));
      },
      [&] {  // copied and cut, and grown past the place with the same first bytes
        fs::copy_file(path, path + ".1");
        fs::resize_file(path, 0);
        append(path, record(4) + record(5) + record(6) + record(7));
      },
      [&] {  // copied and cut twice
        fs::copy_file(path, path + ".2");
        fs::resize_file(path, 0);
        append(path, record(4) + record(5));
        fs::copy_file(path, path + ".1");
        fs::resize_file(path, 0);
        append(path, record(6) + record(7));
        later(path + ".2", -10), later(path + ".1", -5);
      },
  };
  rotations[GetParam()]();
  const auto resumed = open_ok<TailSource>(name);
  ASSERT_TRUE(resumed->seek(cursor).ok());
  std::vector<std::string> expected = {"line 2", "line 3", "line 4"};
  if (GetParam() >= 5) expected.insert(expected.end(), {"line 5", "line 6", "line 7"});
  EXPECT_EQ(awaited(*resumed, expected.size()), expected);
  EXPECT_THAT(resumed->notes(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Rotations, TailAfterRestart, ::testing::Range<size_t>(0, 7));

TEST(TailSource, TellsAFileThatBeganAgainFromItsFormerSelfWithTheSameFirstBytes) {
  TemporaryDirectory directory;
  const std::string first = "{\"text\":\"" + std::string(400, 'x') + "\"}\n";
  const std::string path = directory.write("log", first + record(1) + record(2));
  const std::string name = "tail:" + path + "?format=json";
  const std::string cursor = drained(*open_ok<TailSource>(name)).at(1).cursor;
  fs::copy_file(path, path + ".1");
  fs::resize_file(path, 0);
  append(path, first + record(3) + record(4) + record(5));
  const auto resumed = open_ok<TailSource>(name);
  ASSERT_TRUE(resumed->seek(cursor).ok());
  EXPECT_THAT(awaited(*resumed, 5), ElementsAre("line 2", std::string(400, 'x'), "line 3", "line 4", "line 5"));
}

TEST(TailSource, AFileThatIsGoneIsNotedAndTheNextIsRead) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1) + record(2));
  const std::string name = "tail:" + path + "?format=json";
  const std::string cursor = drained(*open_ok<TailSource>(name)).at(0).cursor;
  fs::remove(path);
  directory.write("log", record(7));
  const auto resumed = open_ok<TailSource>(name);
  ASSERT_TRUE(resumed->seek(cursor).ok());
  EXPECT_THAT(texts(drained(*resumed)), ElementsAre("line 7"));
  EXPECT_THAT(resumed->notes(), ElementsAre(HasSubstr("was gone")));
}

TEST(TailSource, DropsARecordWithoutEndAndCutsALineWithoutEnd) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", std::string(kRecordBytesMax + 100, 'x'));
  const auto records = open_ok<TailSource>("tail:" + path + "?format=json");
  EXPECT_THAT(drained(*records), IsEmpty());
  append(path, "more\n" + record(1));
  EXPECT_THAT(texts(drained(*records)), ElementsAre("line 1"));
  EXPECT_THAT(records->notes(), ElementsAre(HasSubstr("longer than")));
  const std::vector<Document> pieces = drained(*open_ok<TailSource>("tail:" + path));
  EXPECT_EQ(joined(pieces).size(), fs::file_size(path));
  for (const Document& piece : pieces) EXPECT_LE(piece.text.size(), kPieceBytes);
}

TEST(TailSource, NulsAndBytesThatAreNoTextDoNotStopIt) {
  TemporaryDirectory directory;
  std::string bytes;
  for (int i = 0; i < 2'000; ++i) bytes += static_cast<char>(i * 7);
  const std::string path = directory.write("log", bytes + "\n" + record(1));
  EXPECT_THAT(texts(drained(*open_ok<TailSource>("tail:" + path + "?format=json"))), ElementsAre("line 1"));
}

TEST(TailSource, RefusesACursorThatIsNone) {
  TemporaryDirectory directory;
  const std::string path = directory.write("log", record(1));
  const auto source = open_ok<TailSource>("tail:" + path + "?format=json");
  const std::string cursor = drained(*source).at(0).cursor;
  for (size_t size = 1; size + 16 < cursor.size(); ++size)
    EXPECT_NE(source->seek(cursor.substr(0, size)).code(), Code::kInternal);
  for (const char* bad : {"x", "1 2", "1 -2 3 4 5 6 7 8", "1 2 3 4 999 a 1 b", "1 2 3 4 1 a 1 b c", "1 1 1 1 2 a 1 b"})
    EXPECT_EQ(source->seek(bad).code(), Code::kInvalidArgument) << bad;
}

TEST(TailSource, NamesWhatIsWrongWithItsName) {
  TemporaryDirectory directory;
  EXPECT_EQ(TailSource::open("tail:").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(TailSource::open("tail:" + directory.path()).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(TailSource::open("tail:" + directory.path("log") + "?from=middle").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(TailSource::open("tail:" + directory.path("log") + "?colour=1").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(TailSource::open("tail:" + directory.path("no/log")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace streamvec
