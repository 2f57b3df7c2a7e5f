// What the kinds of archives have in common: files one after the other, cursors, records counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/source/archive/archive_file.h"
#include "streamvec/source/decoded_file.h"
#include "streamvec/source/file_source.h"
#include "streamvec/source/record_counts.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Files are those of list_files(). A file that is damaged is read as far as it can be and noted. The cursor of a
// document is a place between two records; saved() adds the file's size and time of change, which seek() compares as
// FileSource does. bytes_read() after seek() is what it was; later ones may differ by a block from an unbroken run's.
class ArchiveSource : public Source {
 public:
  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  std::string saved(const std::string& cursor) const override;
  Capabilities capabilities() const override { return {}; }
  std::string contents() const override { return contents_of(files_); }
  int64_t bytes_total() const override { return bytes_total_; }
  int64_t bytes_read() const override { return bytes_read_; }
  std::string name() const override { return name_; }
  std::vector<std::string> notes() const override;

 protected:
  ArchiveSource(std::string name, std::vector<FileStamp> files);

  // Prepares for a file, from its beginning or from a place in it.
  virtual Status begin_file(const std::string& path) = 0;
  // Reads records until one is a document (all but its cursor is set); false at the end of the file. kDataLoss: it was
  // counted, reading may go on after recover().
  virtual Result<bool> next(ArchiveFile& file, Document& document) = 0;

  RecordCounts counts_;

 private:
  Status open_file(ArchiveFile::Place place);
  Result<bool> next_document(Document& document);
  int64_t bytes_before() const;

  std::string name_;
  std::vector<FileStamp> files_;
  int64_t bytes_total_ = 0, bytes_read_ = 0;
  size_t index_ = 0;
  std::optional<ArchiveFile> file_;
  bool resumed_ = false;
  std::vector<std::string> damages_;  // the first few
};

}  // namespace streamvec
