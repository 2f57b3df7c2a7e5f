// Text from files: plain or compressed by gzip, zstd, xz or bzip2 (known by their content), and directories of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/decoded_file.h"
#include "streamvec/source/source.h"

namespace streamvec {

// The files that `paths` stand for, in order: each path itself, or of a directory the regular files in it and below,
// sorted by path; what starts with '.' is skipped, directories that links lead to are read once, too. Each can be
// opened: kNotFound, kPermissionDenied, kInvalidArgument for what is neither file nor directory, otherwise.
Result<std::vector<FileStamp>> list_files(const std::vector<std::string>& paths);
// kFailedPrecondition, with both values, when the file is not what it was: path, size and time of change are compared.
Status check_unchanged(const FileStamp& then, const FileStamp& now);
// Source::contents() of files.
std::string contents_of(const std::vector<FileStamp>& files);

// Reads the files in the order given, in pieces of up to 64 KB cut as piece.h says; a piece never spans two files.
// A byte order mark at the beginning of a file is taken off. Files without a byte are
// noted. Never holds more than 192 KB of a file. read() waits for the disk only and does not look at its deadline.
//
// In a stream each file is known by itself, by path, size and time of change: of those that saved() names as read only
// what has been added at the end is read, and one that has become another is read anew and noted, whichever files are
// named beside them and in which order. Only a file that was read in part must be there as it was, or longer.
//
// Otherwise a cursor is JSON: the file's index and path, the decoded bytes read of it, its size and time of change.
// seek() reads the rest of the file alone if it is plain; if it is compressed, it decodes on where the place is ahead
// in the file that is open, and from the file's beginning otherwise. When size or time have changed since, it returns
// kFailedPrecondition with both values.
class FileSource : public Source {
 public:
  struct Options {
    bool empty_ok = false;  // whether it is no error that all files are empty (other sources follow)
  };
  // Checks that each path is there and can be opened before anything is read: kNotFound, kPermissionDenied,
  // kInvalidArgument for what is neither file nor directory. REQUIRES: at least one path.
  static Result<std::unique_ptr<Source>> open(const std::vector<std::string>& paths, Options options);
  static Result<std::unique_ptr<Source>> open(const std::vector<std::string>& paths) { return open(paths, Options()); }
  // The same, for what looks at the files too.
  static Result<std::unique_ptr<FileSource>> open_files(const std::vector<std::string>& paths, Options options);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  std::string saved(const std::string& cursor) const override;
  std::string contents() const override { return contents_of(files_); }
  // Nodes of a cluster take files over from each other by name.
  std::vector<std::string> keys() const override;
  void join_stream(bool alone) override {
    in_stream_ = true;
    alone_ = alone;
  }
  Capabilities capabilities() const override { return {.skips = true}; }
  int64_t bytes_total() const override { return bytes_total_; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override;
  std::vector<std::string> notes() const override;

  // Of the document handed out last, or sought: which file it is in, and whether it is the last of that file.
  size_t file_index() const { return index_; }
  bool at_file_end() const { return file_ended_ && begin_ == end_; }
  // A cursor to seek the first document of that file.
  std::string file_begin_cursor() const { return cursor_at(0, bytes_before_); }

 private:
  FileSource(std::vector<FileStamp> files, Options options);
  void rewind();
  Status open_file();
  void close_file();
  Status fill();
  Status check_beginning();
  Result<bool> next(Document& document);
  std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void take(size_t count);
  std::string cursor_at(int64_t offset, int64_t bytes_read) const;
  Status skip_to(int64_t offset);
  Status skip_ahead(int64_t offset);
  Status seek_in_stream(const std::string& cursor);
  Status seek_in_files(const std::string& cursor);
  Result<int64_t> begin_of_file();

  std::vector<FileStamp> files_;
  Options options_;
  int64_t bytes_total_ = 0;
  std::set<size_t> empty_;  // files found to be empty

  // Of a stream.
  struct ReadFile {
    FileStamp stamp;     // as it was then
    int64_t offset = 0;  // decoded bytes read
    bool whole = true;   // that was all of it
  };
  bool in_stream_ = false, alone_ = false;
  std::map<std::string, ReadFile> read_before_;  // by path as JSON has it
  std::vector<int64_t> ends_;                    // by file: decoded bytes, once it is read
  std::vector<std::string> notes_;

  size_t index_ = 0;                 // of the file being read
  std::optional<DecodedFile> file_;  // open while it is read
  bool file_ended_ = false;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // what of it is text not handed out yet
  int64_t offset_ = 0;          // decoded bytes of the file before begin_
  int64_t bytes_before_ = 0;    // of the files before this one, as stored
  int64_t bytes_read_ = 0;
  bool anything_read_ = false;
  bool new_text_ = false;  // in this run
};

}  // namespace streamvec
