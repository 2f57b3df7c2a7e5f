// A file that is being appended to, followed through its rotations.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/decoded_file.h"
#include "streamvec/source/directory_watch.h"
#include "streamvec/source/record.h"
#include "streamvec/source/record_counts.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Never ends. A line is handed out once its end is there. Records are a line each; plain text comes as all the whole
// lines there are, up to 64 KB. A path at which there is nothing yet is waited for.
//
// Rotation is followed in its usual forms: PATH renamed (to PATH.1, PATH-20240501 ...) and made anew, after the old one
// has been still for half a second; PATH copied and cut to nothing, where the rest of the old text is read from the
// copy. Files rotated while nobody read are read in the order of their times, compressed ones too.
//
// A cursor has inode, offset and sums of the file's first bytes and of those before the offset: after a restart the
// file is found under any of those names. When it is gone, reading goes on with the oldest file after it, and a note
// says so. Memory: 128 KB, or the longest line up to kRecordBytesMax; a longer record is dropped and counted, a longer
// line of plain text is cut as piece.h says.
class TailSource : public Source {
 public:
  // "tail:PATH?from=start|end" and RecordFormat's settings. from=end leaves out what is there at the first start; the
  // default is start. kNotFound when the directory of PATH is not there.
  static Result<std::unique_ptr<Source>> open(const std::string& name);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Capabilities capabilities() const override { return {.endless = true}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override { return name_; }
  std::vector<std::string> notes() const override;

 private:
  struct Candidate;
  using Clock = Deadline::Clock;

  TailSource(std::string name, std::string path, bool from_end, RecordFormat format);
  void reset();
  Result<bool> fill();
  Result<bool> start();
  Result<bool> read_more();
  Status open_at(const std::string& path, int64_t offset);
  bool is_intact();
  Result<bool> after_truncation();
  bool is_still(int64_t mtime_ns);
  Result<bool> follow_rotation();
  std::vector<Candidate> candidates() const;
  std::optional<Candidate> next_candidate(int64_t mtime_ns, uint64_t inode) const;
  bool take(Document& document);
  size_t unit_bytes(std::string_view rest) const;
  bool finish(std::string_view unit, size_t size, Document& document);
  void drop(size_t size);
  std::string cursor(std::string_view unit) const;
  std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }
  int64_t read_offset() const { return offset_ + static_cast<int64_t>(rest().size()); }

  std::string name_, path_;
  bool from_end_ = false;
  RecordFormat format_;
  DirectoryWatch watch_;
  RecordCounts counts_;
  int64_t truncations_ = 0, losses_ = 0;

  std::optional<DecodedFile> file_;
  uint64_t inode_ = 0;
  int64_t mtime_ns_ = 0;     // when it was looked at last
  bool was_live_ = false;    // it was PATH when it was opened
  bool started_ = false;     // the first file was found
  std::string head_, last_;  // the first bytes of the file, and the last that were read of it
  std::string buffer_;       // read; what begins at begin_ is not handed out yet
  size_t begin_ = 0;
  int64_t offset_ = 0;                            // of rest() in the file
  bool ended_ = false;                            // no more comes of the file: its last line needs no end
  bool dropping_ = false;                         // inside of a line that is not wanted
  std::optional<Clock::time_point> still_since_;  // the file was rotated and has had nothing new since
  int64_t bytes_read_ = 0;
};

}  // namespace streamvec
