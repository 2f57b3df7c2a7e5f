#include "streamvec/source/http/content_decoder.h"

#include <brotli/decode.h>

#include <algorithm>
#include <cctype>

#include "streamvec/source/decoder.h"

namespace streamvec {
namespace {

constexpr size_t kStepBytes = size_t{64} << 10;

Status too_large(size_t size_max) {
  return error(Code::kResourceExhausted, "larger than ", size_max, " bytes when decoded");
}

class PlainDecoder : public ContentDecoder {
 public:
  Status add(std::string_view bytes, size_t size_max, std::string& out) override {
    const size_t room = size_max - std::min(size_max, out.size());
    out += bytes.substr(0, room);
    return bytes.size() > room ? too_large(size_max) : Status();
  }
  Status finish() override { return {}; }
};

// Calls `step(bytes, room)` until it has taken all bytes and has no more to say. It takes from both what it used.
template <typename Step>
Status decode_all(std::string_view bytes, size_t size_max, std::string& out, Step step) {
  for (;;) {
    const size_t size = out.size();
    // One byte more than is allowed shows whether there is more.
    const size_t room_size = std::min(kStepBytes, size_max - std::min(size_max, size) + 1);
    out.resize(size + room_size);
    std::span<char> room(out.data() + size, room_size);
    const Status status = step(bytes, room);
    out.resize(out.size() - room.size());
    if (!status.ok()) return status;
    if (out.size() > size_max) {
      out.resize(size_max);
      return too_large(size_max);
    }
    if (!room.empty()) return {};
  }
}

class FileDecoder : public ContentDecoder {
 public:
  explicit FileDecoder(Compression compression) : decoder_(Decoder::make(compression)) {}

  Status add(std::string_view bytes, size_t size_max, std::string& out) override {
    if (bytes.empty()) return {};
    begun_ = true;
    return decode_all(bytes, size_max, out,
                      [&](std::string_view& in, std::span<char>& room) { return decoder_->decode(in, room); });
  }
  Status finish() override {
    if (!begun_ || decoder_->at_member_end()) return {};
    return error(Code::kDataLoss, "the compressed body ends in its middle");
  }

 private:
  std::unique_ptr<Decoder> decoder_;
  bool begun_ = false;
};

class BrotliDecoder : public ContentDecoder {
 public:
  BrotliDecoder() : state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance) {}

  Status add(std::string_view bytes, size_t size_max, std::string& out) override {
    if (bytes.empty()) return {};
    begun_ = true;
    return decode_all(bytes, size_max, out,
                      [&](std::string_view& in, std::span<char>& room) { return step(in, room); });
  }
  Status finish() override {
    if (!begun_ || BrotliDecoderIsFinished(state_.get())) return {};
    return error(Code::kDataLoss, "the compressed body ends in its middle");
  }

 private:
  Status step(std::string_view& in, std::span<char>& room) {
    size_t in_size = in.size(), room_size = room.size();
    const auto* next_in = reinterpret_cast<const uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<uint8_t*>(room.data());
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state_.get(), &in_size, &next_in, &room_size, &next_out, nullptr);
    in.remove_prefix(in.size() - in_size);
    room = room.last(room_size);
    if (result == BROTLI_DECODER_RESULT_ERROR) return error(Code::kDataLoss, "invalid br data");
    if (result == BROTLI_DECODER_RESULT_SUCCESS && !in.empty())
      return error(Code::kDataLoss, "bytes follow the end of the br stream");
    return {};
  }

  std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state_;
  bool begun_ = false;
};

}  // namespace

Result<std::unique_ptr<ContentDecoder>> ContentDecoder::make(std::string_view encoding) {
  std::string low;
  for (const char c : encoding)
    if (c != ' ' && c != '\t') low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::unique_ptr<ContentDecoder> decoder;
  if (low.empty() || low == "identity") decoder = std::make_unique<PlainDecoder>();
  if (low == "gzip" || low == "x-gzip") decoder = std::make_unique<FileDecoder>(Compression::kGzip);
  if (low == "zstd") decoder = std::make_unique<FileDecoder>(Compression::kZstd);
  if (low == "br") decoder = std::make_unique<BrotliDecoder>();
  if (decoder == nullptr)
    return error(Code::kInvalidArgument, "its Content-Encoding is ", encoding.substr(0, 100),
                 ", which was not asked for");
  return decoder;
}

Result<std::string> decoded_file(std::string bytes, size_t size_max) {
  const Compression compression = recognise_compression(bytes);
  if (compression == Compression::kNone) return bytes;
  FileDecoder decoder(compression);
  std::string decoded;
  STREAMVEC_RETURN_IF_ERROR(decoder.add(bytes, size_max, decoded));
  STREAMVEC_RETURN_IF_ERROR(decoder.finish());
  return decoded;
}

}  // namespace streamvec
