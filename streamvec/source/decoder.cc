#include "streamvec/source/decoder.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <string>

namespace streamvec {
namespace {

using namespace std::string_view_literals;

struct Mark {
  Compression compression;
  std::string_view bytes;
};
// bzip2 is told by its first block's mark too (or the end mark of an empty stream): a text may well start with "BZh9".
constexpr Mark kMarks[] = {
    {Compression::kGzip, "\x1f\x8b\x08"sv},
    {Compression::kZstd, "\x28\xb5\x2f\xfd"sv},
    {Compression::kXz, "\xfd\x37zXZ\0"sv},
    {Compression::kBzip2, "BZh\0\x31\x41\x59\x26\x53\x59"sv},  // \0 stands for '1' to '9'
    {Compression::kBzip2, "BZh\0\x17\x72\x45\x38\x50\x90"sv},
};

bool fits(const Mark& mark, std::string_view head) {
  for (size_t i = 0; i < std::min(mark.bytes.size(), head.size()); ++i) {
    const bool level = mark.compression == Compression::kBzip2 && i == 3;
    if (level ? head[i] < '1' || head[i] > '9' : head[i] != mark.bytes[i]) return false;
  }
  return true;
}

// zstd may begin with a skippable frame, whose mark has sixteen forms.
bool is_skippable_zstd(std::string_view head) {
  return head.size() >= 4 && (head[0] & '\xf0') == '\x50' && head.substr(1, 3) == "\x2a\x4d\x18"sv;
}

template <typename Size>
Size clamp_size(size_t size) {
  return static_cast<Size>(std::min<size_t>(size, std::numeric_limits<Size>::max()));
}

// The C libraries take their input through pointers that are not const, and do not write there.
template <typename T>
T* unconst(std::string_view bytes) {
  return reinterpret_cast<T*>(const_cast<char*>(bytes.data()));
}

class GzipDecoder : public Decoder {
 public:
  ~GzipDecoder() override { inflateEnd(&stream_); }

 protected:
  Status begin_member() override {
    constexpr int kGzipOnly = 16;
    const int result = stream_.state ? inflateReset(&stream_) : inflateInit2(&stream_, kGzipOnly + MAX_WBITS);
    return result == Z_OK ? Status() : error(Code::kResourceExhausted, "no memory for zlib");
  }
  Status step(std::string_view& in, std::span<char>& out, bool& ended) override {
    const auto in_size = clamp_size<uInt>(in.size()), out_size = clamp_size<uInt>(out.size());
    stream_.next_in = unconst<Bytef>(in);
    stream_.avail_in = in_size;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = out_size;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(in_size - stream_.avail_in);
    out = out.subspan(out_size - stream_.avail_out);
    ended = result == Z_STREAM_END;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return {};
    return error(Code::kDataLoss, stream_.msg ? stream_.msg : "invalid data");
  }

 private:
  z_stream stream_ = {};
};

class Bzip2Decoder : public Decoder {
 public:
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }

 protected:
  Status begin_member() override {
    BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    const bool ok = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
    return ok ? Status() : error(Code::kResourceExhausted, "no memory for bzip2");
  }
  Status step(std::string_view& in, std::span<char>& out, bool& ended) override {
    const auto in_size = clamp_size<unsigned>(in.size()), out_size = clamp_size<unsigned>(out.size());
    stream_.next_in = unconst<char>(in);
    stream_.avail_in = in_size;
    stream_.next_out = out.data();
    stream_.avail_out = out_size;
    const int result = BZ2_bzDecompress(&stream_);
    in.remove_prefix(in_size - stream_.avail_in);
    out = out.subspan(out_size - stream_.avail_out);
    ended = result == BZ_STREAM_END;
    if (result == BZ_OK || result == BZ_STREAM_END) return {};
    if (result == BZ_MEM_ERROR) return error(Code::kResourceExhausted, "no memory for bzip2");
    return error(Code::kDataLoss, result == BZ_DATA_ERROR_MAGIC ? "no bzip2 stream begins here" : "invalid data");
  }

 private:
  bz_stream stream_ = {};
};

class XzDecoder : public Decoder {
 public:
  ~XzDecoder() override { lzma_end(&stream_); }

 protected:
  Status begin_member() override {
    constexpr uint64_t kMemoryMax = uint64_t{512} << 20;
    const bool ok = lzma_stream_decoder(&stream_, kMemoryMax, 0) == LZMA_OK;
    return ok ? Status() : error(Code::kResourceExhausted, "no memory for xz");
  }
  Status step(std::string_view& in, std::span<char>& out, bool& ended) override {
    stream_.next_in = unconst<uint8_t>(in);
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    in.remove_prefix(in.size() - stream_.avail_in);
    out = out.last(stream_.avail_out);
    ended = result == LZMA_STREAM_END;
    if (result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR) return {};
    if (result == LZMA_MEMLIMIT_ERROR || result == LZMA_MEM_ERROR)
      return error(Code::kResourceExhausted, "decoding needs ", lzma_memusage(&stream_) >> 20,
                   " MB of memory, the limit is 512; try: xz -dc FILE | streamvec ... -");
    return error(Code::kDataLoss, result == LZMA_FORMAT_ERROR ? "no xz stream begins here" : "invalid data");
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class ZstdDecoder : public Decoder {
 public:
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }

 protected:
  Status begin_member() override {
    if (stream_ == nullptr) stream_ = ZSTD_createDStream();
    return stream_ != nullptr ? Status() : error(Code::kResourceExhausted, "no memory for zstd");
  }
  Status step(std::string_view& in, std::span<char>& out, bool& ended) override {
    ZSTD_inBuffer from = {in.data(), in.size(), 0};
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    const size_t result = ZSTD_decompressStream(stream_, &to, &from);
    in.remove_prefix(from.pos);
    out = out.subspan(to.pos);
    ended = result == 0;
    if (!ZSTD_isError(result)) return {};
    const std::string why = ZSTD_getErrorName(result);
    if (why.find("memory") != std::string::npos)
      return error(Code::kResourceExhausted, why, "; try: zstd -dc --long=31 FILE | streamvec ... -");
    return error(Code::kDataLoss, why);
  }

 private:
  ZSTD_DStream* stream_ = nullptr;
};

}  // namespace

std::string_view compression_name(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    case Compression::kXz:
      return "xz";
    case Compression::kBzip2:
      return "bzip2";
    case Compression::kNone:
      break;
  }
  return "plain";
}

Compression recognise_compression(std::string_view head) {
  for (const Mark& mark : kMarks)
    if (head.size() >= mark.bytes.size() && fits(mark, head)) return mark.compression;
  return is_skippable_zstd(head) ? Compression::kZstd : Compression::kNone;
}

bool may_become_compression(std::string_view head) {
  const auto open = [&](const Mark& mark) { return head.size() < mark.bytes.size() && fits(mark, head); };
  return std::any_of(std::begin(kMarks), std::end(kMarks), open);
}

std::unique_ptr<Decoder> Decoder::make(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return std::make_unique<GzipDecoder>();
    case Compression::kZstd:
      return std::make_unique<ZstdDecoder>();
    case Compression::kXz:
      return std::make_unique<XzDecoder>();
    case Compression::kBzip2:
      return std::make_unique<Bzip2Decoder>();
    case Compression::kNone:
      break;
  }
  STREAMVEC_CHECK(compression != Compression::kNone);
  return nullptr;
}

Status Decoder::decode(std::string_view& in, std::span<char>& out) {
  return decode_until(false, in, out);
}

Status Decoder::decode_member(std::string_view& in, std::span<char>& out) {
  return decode_until(true, in, out);
}

Status Decoder::decode_until(bool member_end, std::string_view& in, std::span<char>& out) {
  while (!out.empty()) {
    if (!in_member_) {
      if (members_ > 0) in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
      if (in.empty()) return {};
      STREAMVEC_RETURN_IF_ERROR(begin_member());
      in_member_ = true;
      ++members_;
    }
    const size_t in_before = in.size(), out_before = out.size();
    bool ended = false;
    STREAMVEC_RETURN_IF_ERROR(step(in, out, ended));
    in_member_ = !ended;
    if (ended && member_end) return {};
    if (ended || in.size() != in_before || out.size() != out_before) continue;
    return in.empty() ? Status() : error(Code::kDataLoss, "decoding makes no progress");
  }
  return {};
}

}  // namespace streamvec
