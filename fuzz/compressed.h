// Seeds for what undoes compression.
#pragma once

#include <brotli/encode.h>
#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "streamvec/core/status.h"

namespace streamvec {

inline std::string gzip_of(const std::string& text) {
  z_stream stream = {};
  STREAMVEC_CHECK_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  STREAMVEC_CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstd_of(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

inline std::string xz_of(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  const auto status =
      lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                              reinterpret_cast<uint8_t*>(out.data()), &size, out.size());
  STREAMVEC_CHECK_EQ(status, LZMA_OK);
  out.resize(size);
  return out;
}

inline std::string bzip2_of(const std::string& text) {
  std::string out(text.size() + text.size() / 100 + 600, '\0');
  auto size = static_cast<unsigned>(out.size());
  const int status = BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                                              static_cast<unsigned>(text.size()), 1, 0, 0);
  STREAMVEC_CHECK_EQ(status, BZ_OK);
  out.resize(size);
  return out;
}

inline std::string brotli_of(const std::string& text) {
  size_t size = BrotliEncoderMaxCompressedSize(text.size());
  std::string out(size, '\0');
  STREAMVEC_CHECK(BrotliEncoderCompress(5, 18, BROTLI_MODE_TEXT, text.size(),
                                        reinterpret_cast<const uint8_t*>(text.data()), &size,
                                        reinterpret_cast<uint8_t*>(out.data())) != BROTLI_FALSE);
  out.resize(size);
  return out;
}

}  // namespace streamvec
