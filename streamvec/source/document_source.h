// Text that a program hands over itself, document by document: what it has in memory, in a database, behind an
// iterator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/source.h"

namespace streamvec {

// What the program implements. Called by one thread at a time, not always the same one. Neither may throw: errors are
// values here, and an exception ends the program.
class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // Appends some documents to `out`, as many as are at hand, and returns how many; 0 at the end. Only text, id, time_s
  // and deleted count. kDeadlineExceeded: none came in time. Any other error is final.
  virtual Result<int64_t> read(Deadline deadline, std::vector<Document>& out) = 0;
  // Begins anew, with the same documents in the same order.
  virtual Status rewind() = 0;
};

// Documents of a DocumentReader as a Source. A cursor names how much text was handed out and its sum, so that a stopped
// run goes on only with the same text: seek() reads it again from the beginning, and is kFailedPrecondition when it has
// another sum. bytes_total() is unknown.
class DocumentSource : public Source {
 public:
  struct Options {
    std::string name = "the documents given";  // no path, so that nobody takes it for a file
    bool replayable = false;  // rewind() works: the text is counted first and may be trained on several times
    // Each document by itself, with its name and time, as a stream wants them; else they are lines of one text, of
    // which pieces are cut as piece.h says: quicker for many short ones, which share a piece.
    bool apart = false;
  };
  DocumentSource(std::unique_ptr<DocumentReader> reader, Options options);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Capabilities capabilities() const override { return {.replayable = options_.replayable}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return offset_; }
  std::string name() const override { return options_.name; }
  std::vector<std::string> notes() const override;

 private:
  Result<int64_t> read_apart(Deadline deadline, std::vector<Document>& out);
  Result<int64_t> read_pieces(int64_t count_max, Deadline deadline, std::vector<Document>& out);
  Status fill(Deadline deadline);
  Status skip_to(int64_t offset);
  Status begin_anew();
  void take(size_t count);
  std::string cursor() const;

  std::unique_ptr<DocumentReader> reader_;
  Options options_;
  std::vector<Document> documents_;  // scratch
  std::string text_;                 // not handed out yet; the first `begin_` bytes of it are
  size_t begin_ = 0;
  bool ended_ = false;
  bool read_any_ = false;
  int64_t offset_ = 0;  // bytes handed out ...
  Checksum sum_;        // ... and their sum
};

}  // namespace streamvec
