// For tests only: compressed bytes made in memory, a directory that goes away, and sources of files in it.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/source/decoder.h"
#include "streamvec/source/source.h"

namespace streamvec {

inline std::string gzip_bytes(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstd_bytes(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

inline std::string xz_bytes(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                                    text.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

inline std::string bzip2_bytes(const std::string& text) {
  std::string out(text.size() + text.size() / 100 + 600, '\0');
  auto size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

inline std::string compressed(Compression compression, const std::string& text) {
  switch (compression) {
    case Compression::kGzip:
      return gzip_bytes(text);
    case Compression::kZstd:
      return zstd_bytes(text);
    case Compression::kXz:
      return xz_bytes(text);
    case Compression::kBzip2:
      return bzip2_bytes(text);
    case Compression::kNone:
      break;
  }
  return text;
}

constexpr Compression kCompressions[] = {Compression::kGzip, Compression::kZstd, Compression::kXz, Compression::kBzip2};

// Lines of words, all different.
inline std::string sample_text(size_t bytes) {
  std::string text;
  for (int line = 0; text.size() < bytes; ++line) text += "line " + std::to_string(line) + " of the sample, 서울\n";
  return text;
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "streamvec-source-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

// A source of that kind, which has to open: open_ok<TailSource>("tail:" + path).
template <typename Kind, typename Name>
std::unique_ptr<Source> open_ok(const Name& name) {
  Result<std::unique_ptr<Source>> source = Kind::open(name);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(source).value();
}

// All documents to the end of the stream, or the error met.
inline Result<std::vector<Document>> read_all(Source& source, int64_t count_max = 1) {
  std::vector<Document> documents;
  for (;;) {
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count,
                               source.read(count_max, Deadline::after(std::chrono::seconds(30)), documents));
    if (count == 0) return documents;
  }
}

inline std::string joined(const std::vector<Document>& documents) {
  std::string text;
  for (const Document& document : documents) text += document.text;
  return text;
}

}  // namespace streamvec
