// Files of records, one a line: JSON lines and tab-separated values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/source/line_reader.h"
#include "streamvec/source/record.h"
#include "streamvec/source/record_counts.h"
#include "streamvec/source/source.h"

namespace streamvec {

// One document for each line that is a record with text. Files and directories are read as FileSource does, compressed
// or not; "-" is standard input, which cannot be read again. Blank lines are passed over, bad records counted and
// noted. A cursor is the place after the record; seek() is as exact and as picky as FileSource's. read() waits for the
// disk only, or for standard input until its deadline.
class RecordSource : public Source {
 public:
  // "jsonl:PATH?text=/title,/body&id=/id&time=/date", "tsv:PATH?text=3,4&id=2&time=1&header=1" (the first line of each
  // file is none); the settings are RecordFormat's. A path has "?" and "%" as %3F and %25.
  static Result<std::unique_ptr<Source>> open(const std::string& name);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  Capabilities capabilities() const override;
  std::string contents() const override { return lines_.source().contents(); }
  int64_t bytes_total() const override { return lines_.source().bytes_total(); }
  int64_t bytes_read() const override { return lines_.source().bytes_read(); }
  std::string name() const override { return name_; }
  std::vector<std::string> notes() const override;

 private:
  RecordSource(std::string name, LineReader lines, RecordFormat format, bool header);
  Result<bool> next(Deadline deadline, Document& document);

  std::string name_;
  LineReader lines_;
  RecordFormat format_;
  bool header_ = false;
  bool resumed_ = false;  // sought a place after which there was text
  RecordCounts counts_;
};

}  // namespace streamvec
