#include "streamvec/ingest/open.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status opening_error(const std::vector<std::string>& names) {
  return open_sources(names).status();
}

// Puts `text` on standard input while it lives.
class FakeStdin {
 public:
  explicit FakeStdin(const std::string& text) : saved_(::dup(STDIN_FILENO)) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ~FakeStdin() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST(OpenSources, PathsAreOneReplayableSource) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "a\n"), b = directory.write("b", "b\n");
  const Result<std::unique_ptr<Source>> source = open_sources({b, a});
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_TRUE((*source)->capabilities().replayable);
  EXPECT_EQ((*source)->bytes_total(), 4);
  EXPECT_EQ(joined(read_all(**source).value()), "b\na\n");
}

TEST(OpenSources, StandardInputAndFilesAreReadInTheOrderGiven) {
  TemporaryDirectory directory;
  const std::string a = directory.write("a", "a\n"), b = directory.write("b", "b\n");
  const FakeStdin text("from stdin\n");
  const Result<std::unique_ptr<Source>> source = open_sources({a, "-", b});
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_FALSE((*source)->capabilities().replayable);
  EXPECT_EQ((*source)->bytes_total(), -1);
  EXPECT_EQ(joined(read_all(**source).value()), "a\nfrom stdin\nb\n");
  EXPECT_EQ((*source)->bytes_read(), 15);
}

TEST(OpenSources, AnEmptyOneAmongOthersIsNotedAndAllEmptyIsAnError) {
  TemporaryDirectory directory;
  const std::string empty = directory.write("empty", ""), full = directory.write("full", "text\n");
  {
    const FakeStdin nothing("");
    const Result<std::unique_ptr<Source>> source = open_sources({empty, "-", full});
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ(joined(read_all(**source).value()), "text\n");
    EXPECT_THAT((*source)->notes(), ::testing::ElementsAre(empty + " is empty", "- is empty"));
  }
  const FakeStdin nothing("");
  const Result<std::unique_ptr<Source>> source = open_sources({"-", empty});
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(read_all(**source).status().code(), Code::kInvalidArgument);
}

TEST(OpenSources, GoesOnInTheMiddleOfSeveralSources) {
  TemporaryDirectory directory;
  const std::vector<std::string> names = {directory.write("a", sample_text(150'000)), "planted:?tokens=9000&seed=2",
                                          directory.write("b.gz", gzip_bytes(sample_text(150'000)))};
  const std::unique_ptr<Source> whole = std::move(open_sources(names)).value();
  ASSERT_TRUE(whole->capabilities().replayable);
  std::vector<Document> documents;
  std::vector<int64_t> bytes_read;
  while (whole->read(1, Deadline::never(), documents).value() > 0) bytes_read.push_back(whole->bytes_read());
  EXPECT_EQ(whole->bytes_read(), whole->bytes_total());
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const std::unique_ptr<Source> resumed = std::move(open_sources(names)).value();
    const Status status = resumed->seek(documents[stop].cursor);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]);
    const std::vector<Document> rest = read_all(*resumed).value();
    ASSERT_EQ(rest.size(), documents.size() - stop - 1);
    for (size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(rest[i].text, documents[stop + 1 + i].text);
  }
  ASSERT_TRUE(whole->seek("").ok());
  EXPECT_EQ(joined(read_all(*whole, 7).value()), joined(documents));
}

TEST(OpenSources, RefusesCursorsThatAreNotItsOwn) {
  TemporaryDirectory directory;
  const std::unique_ptr<Source> source =
      std::move(open_sources({directory.write("a", "a\n"), "planted:?tokens=10"})).value();
  EXPECT_EQ(source->seek("{}").code(), Code::kInvalidArgument);
  EXPECT_EQ(source->seek("nonsense").code(), Code::kInvalidArgument);
  EXPECT_EQ(source->seek(R"({"source":5,"cursor":""})").code(), Code::kFailedPrecondition);
}

TEST(OpenSources, AnUnknownSchemeListsWhatIsKnown) {
  const Status status = opening_error({"gopher://example.org/x"});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("gopher"), HasSubstr(".gz"), HasSubstr("planted:"), HasSubstr("-")));
}

TEST(OpenSources, AWrongNameFailsBeforeAnythingIsRead) {
  TemporaryDirectory directory;
  const FakeStdin text("not read\n");
  EXPECT_EQ(opening_error({"-", directory.path("absent")}).code(), Code::kNotFound);
  char byte = 0;
  EXPECT_EQ(::read(STDIN_FILENO, &byte, 1), 1);
  EXPECT_EQ(byte, 'n');
}

TEST(OpenSources, RefusesNoNamesEmptyNamesAndStandardInputTwice) {
  EXPECT_EQ(opening_error({}).code(), Code::kInvalidArgument);
  EXPECT_EQ(opening_error({""}).code(), Code::kInvalidArgument);
  EXPECT_THAT(opening_error({"-", "-"}).message(), HasSubstr("twice"));
}

TEST(OpenSources, ANamedPipeIsAStreamThatWaitsForItsWriter) {
  TemporaryDirectory directory;
  const std::string path = directory.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Result<std::unique_ptr<Source>> source = open_sources({path});
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_FALSE((*source)->capabilities().replayable);
  std::vector<Document> documents;
  EXPECT_EQ((*source)->read(1, Deadline::after(std::chrono::milliseconds(5)), documents).status().code(),
            Code::kDeadlineExceeded);
  std::thread writing([&] { std::ofstream(path) << "through the pipe\n"; });
  const Result<std::vector<Document>> read = read_all(**source);
  writing.join();
  EXPECT_EQ(joined(read.value()), "through the pipe\n");
}

TEST(OpenSources, APathThatLooksLikeAUrlIsWrittenWithADot) {
  TemporaryDirectory directory;
  const std::string path = directory.write("planted:x", "text\n");
  EXPECT_EQ(joined(read_all(**open_sources({path})).value()), "text\n");
}

}  // namespace
}  // namespace streamvec
