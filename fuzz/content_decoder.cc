// Content codings of responses (source/http/content_decoder.h) and compressed files (source/decoder.h): a byte chooses
// the coding, another the size of the pieces. No more comes out than is allowed, and pieces decode to what the whole
// decodes to, with the same verdict (but for zstd).
#include "streamvec/source/http/content_decoder.h"

#include <algorithm>

#include "fuzz/compressed.h"
#include "fuzz/fuzz.h"

namespace streamvec {
namespace {

constexpr std::string_view kCodings[] = {"gzip", "br", "zstd", "identity"};
constexpr size_t kSizeMax = size_t{256} << 10;

struct Decoded {
  Code code;
  std::string text;
};

Decoded decode(std::string_view coding, std::string_view bytes, size_t piece_size) {
  Decoded result;
  auto decoder = ContentDecoder::make(coding);
  STREAMVEC_CHECK(decoder.ok());
  Status status;
  for (size_t at = 0; at < bytes.size() && status.ok(); at += piece_size)
    status = (*decoder)->add(bytes.substr(at, piece_size), kSizeMax, result.text);
  if (status.ok()) status = (*decoder)->finish();
  result.code = status.code();
  STREAMVEC_CHECK(result.text.size() <= kSizeMax);
  if (result.code == Code::kResourceExhausted && coding != "zstd") STREAMVEC_CHECK_EQ(result.text.size(), kSizeMax);
  return result;
}

}  // namespace

FuzzStart fuzz_start() {
  const std::string text = "The water rose in the night, and it rose again in the morning, and again.";
  const std::string bomb(size_t{1} << 20, 'a');
  FuzzStart start;
  for (const std::string& content : {text, bomb, std::string()}) {
    start.seeds.push_back(std::string("\0\x07", 2) + gzip_of(content));
    start.seeds.push_back("\x01\x07" + brotli_of(content));
    start.seeds.push_back("\x02\x07" + zstd_of(content));
  }
  start.seeds.push_back(std::string("\0\x01", 2) + gzip_of("one ") + gzip_of("two") + std::string(4, '\0'));
  start.seeds.push_back("\x03\x05" + text);
  start.seeds.push_back("\x03\x05" + xz_of(text));
  start.seeds.push_back("\x03\x05" + bzip2_of(text));
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const std::string_view coding = kCodings[input.byte() % std::size(kCodings)];
  const size_t piece_size = 1 + input.byte();
  const std::string_view bytes = input.rest();
  const Decoded pieces = decode(coding, bytes, piece_size);
  const Decoded whole = decode(coding, bytes, std::max<size_t>(1, bytes.size()));
  // Damage and too much text may be met in another order. libzstd checks some sizes only of a whole frame.
  if (coding != "zstd") STREAMVEC_CHECK_EQ(pieces.code == Code::kOk, whole.code == Code::kOk);
  if (whole.code == Code::kOk && pieces.code == Code::kOk) STREAMVEC_CHECK(pieces.text == whole.text);
  if (const Result<std::string> file = decoded_file(std::string(bytes), kSizeMax); file.ok())
    STREAMVEC_CHECK(file->size() <= kSizeMax);
  return 0;
}
