// A directory into which files are put: each is read once, when it is complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "streamvec/source/directory_watch.h"
#include "streamvec/source/record.h"
#include "streamvec/source/record_counts.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Never ends. Regular files lying in the directory itself whose names do not begin with "." are read as FileSource
// reads them, compressed or not, in the order of their times of change, then of their names. A file is complete when
// its writer closes it or it is moved here; one that was there before, or where the system does not tell, when it has
// not changed for `settle` seconds (60 when it is known to be open). What is added to a file after it was read is not
// read: see tail: for such. A file that cannot be read (binary, damaged) is noted and left out from the place of the
// damage on.
//
// A file is known by its inode and time of birth, so that it may be renamed. What was read is remembered for all files
// that lie there and the last 10,000 that do not any more, in what saved() gives; a cursor by itself is short.
class WatchSource : public Source {
 public:
  // "watch:DIR?settle=2" and RecordFormat's settings (plain text comes in pieces of up to 64 KB, with the file's time).
  static Result<std::unique_ptr<Source>> open(const std::string& name);
  ~WatchSource() override;

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;  // what saved() gave, or a cursor of this object
  std::string saved(const std::string& cursor) const override;
  Capabilities capabilities() const override { return {.endless = true}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override;
  std::string name() const override { return name_; }
  std::vector<std::string> notes() const override;

 private:
  struct Found;
  class OpenFile;
  // A file that was read to its end, or as far as it could be.
  struct Finished {
    int64_t number = 0;  // of files before it
    bool there = true;   // when the directory was looked at last
  };

  WatchSource(std::string name, std::string directory, int64_t settle_s, const Location& location);
  void reset();
  void find_waiting();
  bool open_next();
  void finish_file(const std::string& problem);
  void look(const std::vector<DirectoryWatch::Event>& events);
  std::vector<Found> list() const;
  bool is_complete(const Found& file) const;
  void forget_gone(const std::vector<Found>& files);
  Status resume(const std::string& identity, const std::string& inner);
  void note(const std::string& line);

  std::string name_, directory_;
  int64_t settle_s_ = 2;
  Location location_;
  DirectoryWatch watch_;
  std::map<std::string, Finished> finished_;  // by identity
  std::deque<std::string> gone_;              // of those, what is not there any more, oldest first
  int64_t files_read_ = 0;
  int64_t bytes_before_ = 0;                      // of the files read
  std::set<std::string> being_written_, closed_;  // names, by the events
  std::unique_ptr<OpenFile> file_;
  std::deque<Found> waiting_;  // to be read, in this order
  RecordCounts counts_;
  std::vector<std::string> problems_;  // the first few
  int64_t problems_count_ = 0;
};

}  // namespace streamvec
