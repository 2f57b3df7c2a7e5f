// Text from a stream that is read once and may pause: standard input, a pipe, a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/decoder.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Plain or compressed as files are, found out by the first bytes. Pieces are cut as piece.h says; when the writer is
// slow, whole lines are handed out once the first of them has waited for `line_wait`, without waiting for 64 KB.
// Memory: 64 KB of stored bytes, 128 KB of text, and what a decoder needs.
class StdinSource : public Source {
 public:
  struct Options {
    bool empty_ok = false;  // whether it is no error that not a byte comes (other sources follow)
    std::chrono::milliseconds line_wait{50};
  };
  // Standard input, under the name "-". kUnavailable when it is closed.
  static Result<std::unique_ptr<Source>> open(Options options);
  // Any descriptor that poll(2) knows. A pipe without a writer yet is waited for.
  StdinSource(FileHandle descriptor, std::string name, Options options);

  // kDeadlineExceeded when no whole line came in time; what came is kept for the next call. A signal does not end the
  // wait: whoever must stop early gives short deadlines.
  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;  // only "" and only before anything was read
  Capabilities capabilities() const override { return {.replayable = false}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override { return name_; }
  std::vector<std::string> notes() const override;

 private:
  Result<size_t> await_piece(Deadline deadline);
  Result<bool> await_bytes(Deadline deadline);
  Status receive();
  Status decode();
  void decide_compression();
  Status check_beginning();

  FileHandle descriptor_;
  std::string name_;
  Options options_;
  std::vector<char> stored_;  // bytes as they came
  std::string_view pending_;  // those of them not decoded yet
  bool decided_ = false;      // whether compression_ is known
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decoder> decoder_;  // none for plain text
  bool decoder_full_ = false;         // it may hold more text than the last call had room for
  bool stored_end_ = false;
  std::string text_;                       // decoded, not handed out yet
  Deadline::Clock::time_point line_came_;  // when text_ got its first whole line
  bool beginning_checked_ = false;
  int64_t bytes_read_ = 0, text_bytes_ = 0;
};

}  // namespace streamvec
