// std::ostream onto a FileWriter and std::istream from a FileReader, for text that is written and parsed by streams.
// Errors come back as a Status from status(); a stream by itself only says that something failed.
#pragma once

#include <streambuf>
#include <string>

#include "streamvec/core/durable_file.h"

namespace streamvec {

class FileWriterBuf : public std::streambuf {
 public:
  explicit FileWriterBuf(FileWriter& file) : file_(file) {}
  const Status& status() const { return status_; }

 protected:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;

 private:
  FileWriter& file_;
  Status status_;
};

// Reads the file once, from its beginning, and sums what passes.
class FileReaderBuf : public std::streambuf {
 public:
  explicit FileReaderBuf(const FileReader& file) : file_(file) {}
  const Status& status() const { return status_; }
  uint64_t checksum() const { return checksum_.value(); }  // of the bytes read so far, in pieces of 64 KB

 protected:
  int_type underflow() override;

 private:
  const FileReader& file_;
  std::string buffer_;
  Checksum checksum_;
  int64_t offset_ = 0;
  Status status_;
};

}  // namespace streamvec
