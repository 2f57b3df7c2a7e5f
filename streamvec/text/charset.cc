#include "streamvec/text/charset.h"

#include <unicode/ucnv.h>
#include <unicode/ucnv_cb.h>

#include <array>
#include <cstring>
#include <memory>

#include "streamvec/core/status.h"
#include "streamvec/text/charset_sniff.h"
#include "streamvec/text/utf8_parts.h"

namespace streamvec {
namespace {

constexpr const char* kUtf8 = "UTF-8";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct ConverterClose {
  void operator()(UConverter* converter) const { ucnv_close(converter); }
};
using Converter = std::unique_ptr<UConverter, ConverterClose>;

Converter open(const char* name) {
  UErrorCode status = U_ZERO_ERROR;
  Converter converter(ucnv_open(name, &status));
  STREAMVEC_CHECK(U_SUCCESS(status));  // every name is of our own table, and ICU's data are part of its library
  return converter;
}

std::string_view mend_utf8(std::string_view bytes, std::string& scratch) {
  size_t done = 0;  // up to here `bytes` are in `scratch`, once there is a need for it
  bool mended = false;
  for_each_part(bytes, [&](size_t begin, size_t end, bool well_formed) {
    if (well_formed) return;
    if (!mended) scratch.clear();
    mended = true;
    scratch.append(bytes, done, begin - done).append(kReplacement);
    done = end;
  });
  if (!mended) return bytes;
  return scratch.append(bytes, done);
}

// ICU's own callback writes U+001A for some single bytes.
void substitute(const void*, UConverterToUnicodeArgs* args, const char*, int32_t, UConverterCallbackReason reason,
                UErrorCode* status) {
  if (reason > UCNV_IRREGULAR) return;  // reset, close, clone
  *status = U_ZERO_ERROR;
  const UChar replacement = 0xFFFD;
  ucnv_cbToUWriteUChars(args, &replacement, 1, 0, status);
}

std::string_view convert(std::string_view bytes, const char* encoding, std::string& scratch) {
  const Converter from = open(encoding), to = open(kUtf8);
  UErrorCode status = U_ZERO_ERROR;
  ucnv_setToUCallBack(from.get(), substitute, nullptr, nullptr, nullptr, &status);
  std::array<UChar, 2'048> pivot;
  std::array<char, 8'192> piece;
  UChar *pivot_source = pivot.data(), *pivot_target = pivot.data();
  const char* source = bytes.data();
  const char* const end = source + bytes.size();
  scratch.clear();
  do {
    char* target = piece.data();
    status = U_ZERO_ERROR;
    ucnv_convertEx(to.get(), from.get(), &target, piece.data() + piece.size(), &source, end, pivot.data(),
                   &pivot_source, &pivot_target, pivot.data() + pivot.size(), /*reset=*/false, /*flush=*/true, &status);
    scratch.append(piece.data(), static_cast<size_t>(target - piece.data()));
  } while (status == U_BUFFER_OVERFLOW_ERROR);
  STREAMVEC_CHECK(U_SUCCESS(status));
  return scratch;
}

std::string_view decode(std::string_view bytes, const char* encoding, std::string& scratch) {
  if (bytes.empty()) return {};
  return std::strcmp(encoding, kUtf8) == 0 ? mend_utf8(bytes, scratch) : convert(bytes, encoding, scratch);
}

struct Mark {
  std::string_view bytes;
  const char* encoding;
};
using namespace std::string_view_literals;
constexpr std::array kMarks = {Mark{"\xEF\xBB\xBF"sv, "UTF-8"}, Mark{"\xFF\xFE\0\0"sv, "UTF-32LE"},
                               Mark{"\0\0\xFE\xFF"sv, "UTF-32BE"}, Mark{"\xFF\xFE"sv, "UTF-16LE"},
                               Mark{"\xFE\xFF"sv, "UTF-16BE"}};

const Mark* mark_of(std::string_view bytes) {
  for (const Mark& mark : kMarks)
    if (bytes.starts_with(mark.bytes)) return &mark;
  return nullptr;
}

}  // namespace

std::string_view to_utf8(std::string_view bytes, std::string_view declared, bool html, std::string& scratch) {
  if (const Mark* mark = mark_of(bytes)) return decode(bytes.substr(mark->bytes.size()), mark->encoding, scratch);
  const char* encoding = encoding_of_content_type(declared);
  if (encoding == nullptr) encoding = encoding_of_document(bytes, html);
  if (encoding == nullptr) encoding = encoding_by_looks(bytes, html);
  return decode(bytes, encoding, scratch);
}

}  // namespace streamvec
