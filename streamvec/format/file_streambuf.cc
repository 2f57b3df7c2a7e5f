#include "streamvec/format/file_streambuf.h"

#include <algorithm>

namespace streamvec {

FileWriterBuf::int_type FileWriterBuf::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize FileWriterBuf::xsputn(const char* bytes, std::streamsize count) {
  if (status_.ok()) status_ = file_.write({bytes, static_cast<size_t>(count)});
  return status_.ok() ? count : 0;
}

FileReaderBuf::int_type FileReaderBuf::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  const int64_t count = std::min<int64_t>(64 << 10, file_.size() - offset_);
  buffer_.resize(static_cast<size_t>(count));
  if (status_.ok()) status_ = file_.read(offset_, buffer_.data(), count);
  if (count == 0 || !status_.ok()) return traits_type::eof();
  checksum_.update(buffer_);
  offset_ += count;
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(*gptr());
}

}  // namespace streamvec
