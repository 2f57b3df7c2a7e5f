// The labels of the WHATWG Encoding Standard without punctuation, and ICU's converter for each encoding.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "streamvec/text/charset_sniff.h"

namespace streamvec {
namespace {

struct Encoding {
  const char* icu_name;
  std::string_view labels;  // lower case, letters and digits only, without a year after a colon
};

constexpr std::array kEncodings = {
    Encoding{"UTF-8", "utf8 unicode11utf8 unicode20utf8 xunicode20utf8"},
    Encoding{"UTF-16LE", "utf16 utf16le ucs2 unicode csunicode iso10646ucs2 unicodefeff"},
    Encoding{"UTF-16BE", "utf16be unicodefffe"},
    Encoding{"UTF-32LE", "utf32 utf32le"},
    Encoding{"UTF-32BE", "utf32be"},
    Encoding{
        "windows-1252",
        "windows1252 cp1252 xcp1252 iso88591 latin1 l1 ascii usascii ansix341968 cp819 ibm819 csisolatin1 isoir100"},
    Encoding{"windows-949",
             "euckr cseuckr windows949 cp949 ms949 uhc ksc56011987 ksc56011989 ksc5601 csksc56011987 korean isoir149"},
    Encoding{"gb18030", "gb18030 gbk xgbk cp936 gb2312 gb231280 chinese csgb2312 csiso58gb231280 isoir58 windows936"},
    Encoding{"Big5-HKSCS", "big5 big5hkscs cnbig5 csbig5 xxbig5 cp950 windows950"},
    Encoding{"windows-31j", "shiftjis sjis xsjis csshiftjis ms932 mskanji windows31j cp932"},
    Encoding{"EUC-JP", "eucjp xeucjp cseucpkdfmtjapanese"},
    Encoding{"ISO-2022-JP", "iso2022jp csiso2022jp"},
    Encoding{"windows-1250", "windows1250 cp1250 xcp1250"},
    Encoding{"windows-1251", "windows1251 cp1251 xcp1251"},
    Encoding{"windows-1253", "windows1253 cp1253 xcp1253"},
    Encoding{"windows-1254", "windows1254 cp1254 xcp1254 iso88599 latin5 l5 csisolatin5 isoir148"},
    Encoding{"windows-1255", "windows1255 cp1255 xcp1255"},
    Encoding{"windows-1256", "windows1256 cp1256 xcp1256"},
    Encoding{"windows-1257", "windows1257 cp1257 xcp1257"},
    Encoding{"windows-1258", "windows1258 cp1258 xcp1258"},
    Encoding{"windows-874", "windows874 dos874 iso885911 tis620"},
    Encoding{"ISO-8859-2", "iso88592 latin2 l2 csisolatin2 isoir101"},
    Encoding{"ISO-8859-3", "iso88593 latin3 l3 csisolatin3 isoir109"},
    Encoding{"ISO-8859-4", "iso88594 latin4 l4 csisolatin4 isoir110"},
    Encoding{"ISO-8859-5", "iso88595 cyrillic csisolatincyrillic isoir144"},
    Encoding{"ISO-8859-6",
             "iso88596 iso88596e iso88596i arabic asmo708 ecma114 csiso88596e csiso88596i csisolatinarabic isoir127"},
    Encoding{"ISO-8859-7", "iso88597 greek greek8 ecma118 elot928 suneugreek csisolatingreek isoir126"},
    Encoding{"ISO-8859-8",
             "iso88598 iso88598e iso88598i hebrew visual logical csiso88598e csiso88598i csisolatinhebrew isoir138"},
    Encoding{"ISO-8859-10", "iso885910 latin6 l6 csisolatin6 isoir157"},
    Encoding{"ISO-8859-13", "iso885913"},
    Encoding{"ISO-8859-14", "iso885914"},
    Encoding{"ISO-8859-15", "iso885915 latin9 l9 csisolatin9"},
    Encoding{"KOI8-R", "koi8r koi8 koi cskoi8r"},
    Encoding{"KOI8-U", "koi8u koi8ru"},
    Encoding{"IBM866", "ibm866 cp866 866 csibm866"},
    Encoding{"macintosh", "macintosh mac xmacroman csmacintosh"},
    Encoding{"x-mac-cyrillic", "xmaccyrillic xmacukrainian"},
};

std::unordered_map<std::string_view, const char*> by_label() {
  std::unordered_map<std::string_view, const char*> all;
  for (const Encoding& encoding : kEncodings) {
    for (std::string_view rest = encoding.labels; !rest.empty();) {
      const std::string_view label = rest.substr(0, rest.find(' '));
      all.emplace(label, encoding.icu_name);
      rest.remove_prefix(std::min(rest.size(), label.size() + 1));
    }
  }
  return all;
}

}  // namespace

const char* encoding_of_label(std::string_view label) {
  static const auto encodings = by_label();
  constexpr size_t kLabelBytesMax = 64;
  std::string plain;
  for (const char c : label.substr(0, std::min(label.find(':'), kLabelBytesMax))) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
  }
  const auto found = encodings.find(plain);
  return found == encodings.end() ? nullptr : found->second;
}

}  // namespace streamvec
