// The lines of a source's text, with a place after each to go on from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/file_source.h"
#include "streamvec/source/source.h"

namespace streamvec {

// A line ends with "\n" or "\r\n", which are not part of it, or with its file. A longer one than kRecordBytesMax comes
// cut after one byte more, so that RecordFormat refuses it. Holds a piece of the source and one line. Not thread-safe.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<FileSource> files);
  // A stream that is read once.
  explicit LineReader(std::unique_ptr<Source> stream);

  // False at the end. `line` is valid until the next call. Errors are the source's.
  Result<bool> next(Deadline deadline, std::string_view& line);
  // Whether the line read last was the first of its file.
  bool first_of_file() const { return first_of_file_; }
  // The place after the line read last: seek(place()) goes on there, with the same bytes_read().
  std::string place() const;
  Status seek(const std::string& place);

  const Source& source() const { return *source_; }

 private:
  Result<bool> next_piece(Deadline deadline);
  void append(std::string_view part);

  std::unique_ptr<Source> source_;
  FileSource* files_ = nullptr;   // source_, when it is files
  std::vector<Document> pieces_;  // none or one
  std::string previous_;          // cursor of the piece before that one, or of its file's beginning
  size_t begin_ = 0;              // what of the piece was taken
  std::string line_;              // what came of a line in pieces before
  bool line_begun_ = false;
  int64_t file_ = -1;  // the file of the piece
  bool at_file_begin_ = true, first_of_file_ = false;
};

}  // namespace streamvec
