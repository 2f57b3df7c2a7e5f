// Any bytes to UTF-8 (text/charset.h): the first line is what the server declares. The result is UTF-8 and, read again
// as such, stays as it is.
#include "streamvec/text/charset.h"

#include "fuzz/fuzz.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {
      .seeds = {"text/html; charset=euc-kr\n\xC7\xD1\xB1\xDB is written so",
                "\n<meta charset=shift_jis><p>\x93\xFA\x96{", "x\n<?xml version='1.0' encoding=\"koi8-r\"?>\xC1\xC2",
                "iso-2022-jp\n\x1B$B$\"$$\x1B(B", std::string("utf-16\n\xFF\xFEh\0i\0", 13),
                std::string("\n<\0?\0x\0m\0l\0", 11), "\n\xEF\xBB\xBFmarked", "gb18030\n\x81\x30\x81\x30\xC4\xE3",
                "\n<meta http-equiv=content-type content='text/html; charset=windows-1251'>\xCF\xF0", "utf-7\n+AGE-",
                "big5\n\xA4\xA4\xA4\xE5", "hz-gb-2312\n~{VPND~}", "\nna\xEFve caf\xE9"},
      .words = {"charset=", "<meta ", "encoding=", "utf-8", "utf-16be", "utf-32", "windows-1252", "iso-8859-16",
                "x-user-defined", "replacement", "\x1B$B", "\xEF\xBF\xBD"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const std::string_view declared = input.line();
  for (const bool html : {false, true}) {
    std::string scratch, scratch_again;
    const std::string text(to_utf8(input.rest(), declared, html, scratch));
    STREAMVEC_CHECK(is_utf8(text));
    if (!text.starts_with("\xEF\xBB\xBF")) STREAMVEC_CHECK(to_utf8(text, "utf-8", false, scratch_again) == text);
  }
  return 0;
}
