#include "streamvec/source/stdin_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/source/piece.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A pipe whose reading end is a StdinSource.
class Pipe {
 public:
  explicit Pipe(StdinSource::Options options = StdinSource::Options()) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    writer_ = FileHandle(ends[1]);
    source = std::make_unique<StdinSource>(FileHandle(ends[0]), "-", options);
  }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(writer_.get(), bytes.data(), bytes.size());
      ASSERT_GT(written, 0);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  void close() { FileHandle gone = std::move(writer_); }
  // Writes all from another thread and closes, reading meanwhile.
  Result<std::vector<Document>> pass(const std::string& bytes, size_t chunk = 10'000) {
    std::thread writing([&] {
      for (size_t begin = 0; begin < bytes.size(); begin += chunk) write(std::string_view(bytes).substr(begin, chunk));
      close();
    });
    Result<std::vector<Document>> documents = read_all(*source);
    writing.join();
    return documents;
  }

  std::unique_ptr<StdinSource> source;

 private:
  FileHandle writer_;
};

TEST(StdinSource, GivesTheWholeTextInPieces) {
  const std::string text = sample_text(500'000);
  const Result<std::vector<Document>> documents = Pipe().pass(text);
  ASSERT_TRUE(documents.ok()) << documents.status().message();
  EXPECT_EQ(joined(*documents), text);
  for (const Document& document : *documents) EXPECT_LE(document.text.size(), kPieceBytes);
}

TEST(StdinSource, RecognisesCompressedText) {
  const std::string text = sample_text(300'000);
  for (const Compression compression : kCompressions)
    for (const size_t chunk : {size_t{1'000'000}, size_t{777}}) {
      const Result<std::vector<Document>> documents = Pipe().pass(compressed(compression, text), chunk);
      ASSERT_TRUE(documents.ok()) << documents.status().message();
      EXPECT_EQ(joined(*documents), text) << compression_name(compression);
    }
}

TEST(StdinSource, WaitsForTheWholeMarkOfACompressedStream) {
  Pipe pipe;
  const std::string bytes = bzip2_bytes("text\n");
  std::thread writing([&] {
    for (const char byte : bytes) {
      pipe.write({&byte, 1});
      std::this_thread::sleep_for(milliseconds(1));
    }
    pipe.close();
  });
  const Result<std::vector<Document>> documents = read_all(*pipe.source);
  writing.join();
  ASSERT_TRUE(documents.ok()) << documents.status().message();
  EXPECT_EQ(joined(*documents), "text\n");
}

TEST(StdinSource, DeliversASlowWritersLinesWithoutWaitingForMore) {
  Pipe pipe;
  pipe.write("first line\nsecond line\nthe third is not");
  std::vector<Document> documents;
  ASSERT_EQ(pipe.source->read(1, Deadline::after(std::chrono::seconds(20)), documents).value(), 1);
  EXPECT_EQ(documents[0].text, "first line\nsecond line\n");
  pipe.write(" complete\n");
  pipe.close();
  ASSERT_EQ(pipe.source->read(1, Deadline::never(), documents).value(), 1);
  EXPECT_EQ(documents[1].text, "the third is not complete\n");
  EXPECT_EQ(pipe.source->read(1, Deadline::never(), documents).value(), 0);
}

TEST(StdinSource, AWriterWhoNeverPausesDoesNotHoldLinesBack) {
  Pipe pipe({.line_wait = milliseconds(30)});
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    while (!stop) {
      pipe.write("a line\n");
      std::this_thread::sleep_for(milliseconds(2));
    }
  });
  std::vector<Document> documents;
  const Result<int64_t> count = pipe.source->read(1, Deadline::after(std::chrono::seconds(20)), documents);
  stop = true;
  writing.join();
  ASSERT_TRUE(count.ok());
  EXPECT_LT(documents[0].text.size(), 10'000U);
}

TEST(StdinSource, GivesUpAtTheDeadlineAndKeepsWhatCame) {
  Pipe pipe;
  std::vector<Document> documents;
  EXPECT_EQ(pipe.source->read(1, Deadline::after(milliseconds(5)), documents).status().code(), Code::kDeadlineExceeded);
  pipe.write("half a ");
  EXPECT_EQ(pipe.source->read(1, Deadline::after(milliseconds(5)), documents).status().code(), Code::kDeadlineExceeded);
  pipe.write("line\n");
  ASSERT_EQ(pipe.source->read(1, Deadline::after(std::chrono::seconds(30)), documents).value(), 1);
  EXPECT_EQ(documents[0].text, "half a line\n");
}

TEST(StdinSource, AStreamThatEndsWithoutALineEndIsWhole) {
  EXPECT_EQ(joined(Pipe().pass("one\ntwo").value()), "one\ntwo");
  EXPECT_EQ(joined(Pipe().pass("BZh9").value()), "BZh9");
}

TEST(StdinSource, TakesTheByteOrderMarkOff) {
  EXPECT_EQ(joined(Pipe().pass("\xef\xbb\xbf" + sample_text(kPieceBytes)).value()), sample_text(kPieceBytes));
}

TEST(StdinSource, EmptyInputIsAnErrorUnlessOthersFollow) {
  EXPECT_EQ(Pipe().pass("").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Pipe().pass(gzip_bytes("")).status().code(), Code::kInvalidArgument);
  Pipe allowed({.empty_ok = true});
  EXPECT_TRUE(allowed.pass("").ok());
  EXPECT_THAT(allowed.source->notes(), ::testing::ElementsAre("- is empty"));
}

TEST(StdinSource, RefusesBinaryInput) {
  const Status status = Pipe().pass(std::string(1'000, '\0')).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("standard input is not text"));
}

TEST(StdinSource, ACompressedStreamCutShortIsAnError) {
  for (const Compression compression : kCompressions) {
    const std::string bytes = compressed(compression, sample_text(1'000));
    const Status status = Pipe().pass(bytes.substr(0, bytes.size() - 2)).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(std::string(compression_name(compression))), HasSubstr("at byte")));
  }
}

TEST(StdinSource, ASmallStreamThatDecodesToMuchIsReadInPieces) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "the same line over and over\n";
  Pipe pipe;
  pipe.write(zstd_bytes(text));
  pipe.close();
  std::vector<Document> documents;
  ASSERT_EQ(pipe.source->read(1, Deadline::never(), documents).value(), 1);
  EXPECT_LE(documents[0].text.size(), kPieceBytes);
  const Result<std::vector<Document>> rest = read_all(*pipe.source, 100);
  EXPECT_EQ(documents[0].text + joined(rest.value()), text);
}

TEST(StdinSource, DeliversAllThatCanBeDecodedWhileTheWriterStalls) {
  const std::string text = sample_text(90'000), bytes = bzip2_bytes(text);
  Pipe pipe;
  pipe.write(std::string_view(bytes).substr(0, bytes.size() - 10));  // all but the stream's end mark and sum
  std::vector<Document> documents;
  while (joined(documents).size() < text.size())
    ASSERT_TRUE(pipe.source->read(1, Deadline::after(std::chrono::seconds(30)), documents).ok());
  EXPECT_EQ(joined(documents), text);
}

TEST(StdinSource, CannotBeReadTwice) {
  Pipe pipe;
  EXPECT_FALSE(pipe.source->capabilities().replayable);
  EXPECT_TRUE(pipe.source->seek("").ok()) << "nothing was read yet";
  const std::string cursor = pipe.pass("text\n").value()[0].cursor;
  EXPECT_EQ(pipe.source->seek("").code(), Code::kFailedPrecondition);
  EXPECT_EQ(pipe.source->seek(cursor).code(), Code::kFailedPrecondition);
  EXPECT_EQ(pipe.source->bytes_read(), 5);
  EXPECT_EQ(pipe.source->bytes_total(), -1);
}

}  // namespace
}  // namespace streamvec
