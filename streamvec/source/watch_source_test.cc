#include "streamvec/source/watch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/source/testing_documents.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void set_age(const std::string& path, int seconds) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

TEST(WatchSource, ReadsFilesOnceInTheOrderOfTheirTimesThenNames) {
  TemporaryDirectory directory;
  const auto put = [&](const std::string& name, const std::string& bytes, int age) {
    set_age(directory.write(name, bytes), age);
  };
  put("z", "oldest\n", 50);
  put("b.gz", gzip_bytes("second\n"), 30);
  put("c", "third\n", 20);
  put(".hidden", "no\n", 40);
  put("empty", "", 40);
  put("below/x", "no\n", 40);
  fs::last_write_time(directory.write("aa", "same time, first name\n"), fs::last_write_time(directory.path("c")));
  const auto source = open_ok<WatchSource>("watch:" + directory.path());
  EXPECT_THAT(texts(drained(*source)), ElementsAre("oldest\n", "second\n", "same time, first name\n", "third\n"));
  EXPECT_THAT(drained(*source), IsEmpty());
  EXPECT_TRUE(source->capabilities().endless);
}

TEST(WatchSource, AFileIsReadWhenItsWriterClosesIt) {
  TemporaryDirectory directory;
  const auto source = open_ok<WatchSource>("watch:" + directory.path() + "?settle=0");
  std::ofstream file(directory.path("new"));
  file << "half\n" << std::flush;
  EXPECT_THAT(drained(*source, 50), IsEmpty());
  file << "whole\n" << std::flush;
  EXPECT_THAT(drained(*source, 50), IsEmpty());
  file.close();
  EXPECT_THAT(texts(drained(*source)), ElementsAre("half\nwhole\n"));
}

TEST(WatchSource, AFileMovedInIsReadAtOnceAndAtMostOnce) {
  TemporaryDirectory directory;
  fs::create_directory(directory.path("in"));
  const auto source = open_ok<WatchSource>("watch:" + directory.path("in") + "?settle=1000");
  fs::rename(directory.write("x", "moved\n"), directory.path("in/x"));
  EXPECT_THAT(texts(drained(*source)), ElementsAre("moved\n"));
  fs::rename(directory.path("in/x"), directory.path("in/y"));
  EXPECT_THAT(drained(*source), IsEmpty());
}

TEST(WatchSource, AFileThatWasThereIsReadOnceItHasSettled) {
  TemporaryDirectory directory;
  set_age(directory.write("fresh", "fresh\n"), 0);
  set_age(directory.write("settled", "settled\n"), 100);
  const auto source = open_ok<WatchSource>("watch:" + directory.path() + "?settle=50");
  EXPECT_THAT(texts(drained(*source)), ElementsAre("settled\n"));
  set_age(directory.path("fresh"), 70);
  EXPECT_THAT(texts(drained(*source)), ElementsAre("fresh\n"));
}

TEST(WatchSource, AFileThatIsReplacedBeforeItsTurnIsReadOnceAsItIsThen) {
  TemporaryDirectory directory;
  fs::create_directory(directory.path("in"));
  set_age(directory.write("in/a", "first\n"), 100);
  set_age(directory.write("in/b", "old\n"), 50);
  const auto source = open_ok<WatchSource>("watch:" + directory.path("in"));
  std::vector<Document> documents;
  ASSERT_EQ(source->read(1, Deadline::after(std::chrono::seconds(20)), documents).value(), 1);
  fs::rename(directory.write("x", "new\n"), directory.path("in/b"));
  EXPECT_THAT(texts(drained(*source)), ElementsAre("new\n"));
}

TEST(WatchSource, WakesWhenAFileComes) {
  TemporaryDirectory directory;
  const auto source = open_ok<WatchSource>("watch:" + directory.path());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    directory.write("late", "late\n");
  });
  std::vector<Document> documents;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::seconds(20)), documents).value(), 1);
  writer.join();
}

TEST(WatchSource, GoesOnAfterAnyDocumentWithWhatWasReadAndWhatWasNot) {
  TemporaryDirectory directory;
  for (int i = 0; i < 6; ++i) {
    std::string lines;
    for (int line = 0; line < 5; ++line)
      lines += "{\"text\":\"" + std::to_string(i) + "." + std::to_string(line) + "\"}\n";
    const std::string name = "f" + std::to_string(i);
    set_age(directory.write(name, i % 2 == 0 ? lines : zstd_bytes(lines)), 100 - i);
  }
  const std::string name = "watch:" + directory.path() + "?format=json";
  const auto whole = open_ok<WatchSource>(name);
  std::vector<Document> documents;
  std::vector<int64_t> bytes_read;
  while (whole->read(1, Deadline::after({}), documents).ok()) bytes_read.push_back(whole->bytes_read());
  ASSERT_EQ(documents.size(), 30U);
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const auto resumed = open_ok<WatchSource>(name);
    const Status status = resumed->seek(whole->saved(documents[stop].cursor));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]);
    const std::vector<Document> rest = drained(*resumed, 0);
    ASSERT_EQ(rest.size(), 29 - stop);
    for (size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[i].text, documents[stop + 1 + i].text);
      EXPECT_EQ(resumed->saved(rest[i].cursor), whole->saved(documents[stop + 1 + i].cursor));
    }
    EXPECT_TRUE(whole->seek(documents[stop].cursor).ok()) << "its own short cursor";
    EXPECT_EQ(drained(*whole, 0).size(), 29 - stop);
  }
}

TEST(WatchSource, TheFileBeingReadMayBeRenamedOrGoneAfterARestart) {
  TemporaryDirectory directory;
  set_age(directory.write("a", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n"), 100);
  set_age(directory.write("b", "{\"text\":\"3\"}\n"), 90);
  const std::string name = "watch:" + directory.path() + "?format=json";
  const auto source = open_ok<WatchSource>(name);
  std::vector<Document> documents;
  ASSERT_EQ(source->read(1, Deadline::never(), documents).value(), 1);
  const std::string saved = source->saved(documents[0].cursor);
  fs::rename(directory.path("a"), directory.path("c"));
  const auto renamed = open_ok<WatchSource>(name);
  ASSERT_TRUE(renamed->seek(saved).ok());
  EXPECT_THAT(texts(drained(*renamed)), ElementsAre("2", "3"));
  fs::remove(directory.path("c"));
  const auto gone = open_ok<WatchSource>(name);
  ASSERT_TRUE(gone->seek(saved).ok());
  EXPECT_THAT(texts(drained(*gone)), ElementsAre("3"));
  EXPECT_THAT(gone->notes(), ElementsAre(HasSubstr("is gone")));
}

TEST(WatchSource, AFileThatCannotBeReadIsNotedAndTheNextIsRead) {
  TemporaryDirectory directory;
  set_age(directory.write("a", std::string(1'000, '\0')), 100);
  const std::string packed = gzip_bytes(sample_text(300'000));
  set_age(directory.write("b", packed.substr(0, packed.size() - 5)), 90);
  set_age(directory.write("c", "good\n"), 80);
  const auto source = open_ok<WatchSource>("watch:" + directory.path());
  EXPECT_EQ(drained(*source).back().text, "good\n");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("is not text"), HasSubstr("cut short")));
}

TEST(WatchSource, RefusesACursorThatIsNone) {
  TemporaryDirectory directory;
  set_age(directory.write("a", "text\n"), 100);
  const auto source = open_ok<WatchSource>("watch:" + directory.path());
  const std::vector<Document> documents = drained(*source);
  const std::string saved = source->saved(documents.at(0).cursor);
  for (size_t size = 1; size < saved.size(); ++size)
    EXPECT_EQ(source->seek(saved.substr(0, size)).code(), Code::kInvalidArgument) << size;
  for (const char* bad : {"x", "{}", "[]", "7", R"({"count":-1,"bytes":0,"inner":"","current":"","files":[]})",
                          R"({"count":1,"bytes":0,"inner":"","current":"","files":[7]})"})
    EXPECT_EQ(source->seek(bad).code(), Code::kInvalidArgument) << bad;
  EXPECT_TRUE(source->seek(saved).ok());
}

TEST(WatchSource, NamesWhatIsWrongWithItsName) {
  TemporaryDirectory directory;
  const std::string file = directory.write("a", "x");
  for (const std::string& name : {std::string("watch:"), "watch:" + file, "watch:" + directory.path() + "?settle=x",
                                  "watch:" + directory.path() + "?colour=1"})
    EXPECT_EQ(WatchSource::open(name).status().code(), Code::kInvalidArgument) << name;
  EXPECT_EQ(WatchSource::open("watch:" + directory.path("no")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace streamvec
