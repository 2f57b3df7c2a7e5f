#include "streamvec/text/html_entities.h"

#include <algorithm>
#include <vector>

#include "streamvec/text/code_points.h"

namespace streamvec {
namespace {

constexpr size_t kEntityMax = 8;  // the longest name, "thetasym"

// U+00A0 to U+00FF in order.
constexpr std::string_view kLatin1 =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute "
    "micro "
    "para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil "
    "Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave "
    "Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml "
    "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute "
    "thorn yuml";

struct Named {
  std::string_view name;
  char32_t code_point;
  bool bare;  // may stand without its semicolon
};

constexpr Named kOthers[] = {
    {"quot", '"', true},        {"QUOT", '"', true},       {"amp", '&', true},         {"AMP", '&', true},
    {"apos", '\'', false},      {"lt", '<', true},         {"LT", '<', true},          {"gt", '>', true},
    {"GT", '>', true},          {"COPY", 0xA9, true},      {"REG", 0xAE, true},        {"OElig", 0x152, false},
    {"oelig", 0x153, false},    {"Scaron", 0x160, false},  {"scaron", 0x161, false},   {"Yuml", 0x178, false},
    {"fnof", 0x192, false},     {"circ", 0x2C6, false},    {"tilde", 0x2DC, false},    {"Alpha", 0x391, false},
    {"Beta", 0x392, false},     {"Gamma", 0x393, false},   {"Delta", 0x394, false},    {"Epsilon", 0x395, false},
    {"Zeta", 0x396, false},     {"Eta", 0x397, false},     {"Theta", 0x398, false},    {"Iota", 0x399, false},
    {"Kappa", 0x39A, false},    {"Lambda", 0x39B, false},  {"Mu", 0x39C, false},       {"Nu", 0x39D, false},
    {"Xi", 0x39E, false},       {"Omicron", 0x39F, false}, {"Pi", 0x3A0, false},       {"Rho", 0x3A1, false},
    {"Sigma", 0x3A3, false},    {"Tau", 0x3A4, false},     {"Upsilon", 0x3A5, false},  {"Phi", 0x3A6, false},
    {"Chi", 0x3A7, false},      {"Psi", 0x3A8, false},     {"Omega", 0x3A9, false},    {"alpha", 0x3B1, false},
    {"beta", 0x3B2, false},     {"gamma", 0x3B3, false},   {"delta", 0x3B4, false},    {"epsilon", 0x3B5, false},
    {"zeta", 0x3B6, false},     {"eta", 0x3B7, false},     {"theta", 0x3B8, false},    {"iota", 0x3B9, false},
    {"kappa", 0x3BA, false},    {"lambda", 0x3BB, false},  {"mu", 0x3BC, false},       {"nu", 0x3BD, false},
    {"xi", 0x3BE, false},       {"omicron", 0x3BF, false}, {"pi", 0x3C0, false},       {"rho", 0x3C1, false},
    {"sigmaf", 0x3C2, false},   {"sigma", 0x3C3, false},   {"tau", 0x3C4, false},      {"upsilon", 0x3C5, false},
    {"phi", 0x3C6, false},      {"chi", 0x3C7, false},     {"psi", 0x3C8, false},      {"omega", 0x3C9, false},
    {"thetasym", 0x3D1, false}, {"upsih", 0x3D2, false},   {"piv", 0x3D6, false},      {"ensp", 0x2002, false},
    {"emsp", 0x2003, false},    {"thinsp", 0x2009, false}, {"hairsp", 0x200A, false},  {"zwnj", 0x200C, false},
    {"zwj", 0x200D, false},     {"lrm", 0x200E, false},    {"rlm", 0x200F, false},     {"hyphen", 0x2010, false},
    {"ndash", 0x2013, false},   {"mdash", 0x2014, false},  {"horbar", 0x2015, false},  {"lsquo", 0x2018, false},
    {"rsquo", 0x2019, false},   {"sbquo", 0x201A, false},  {"ldquo", 0x201C, false},   {"rdquo", 0x201D, false},
    {"bdquo", 0x201E, false},   {"dagger", 0x2020, false}, {"Dagger", 0x2021, false},  {"bull", 0x2022, false},
    {"hellip", 0x2026, false},  {"permil", 0x2030, false}, {"prime", 0x2032, false},   {"Prime", 0x2033, false},
    {"lsaquo", 0x2039, false},  {"rsaquo", 0x203A, false}, {"oline", 0x203E, false},   {"frasl", 0x2044, false},
    {"euro", 0x20AC, false},    {"image", 0x2111, false},  {"numero", 0x2116, false},  {"weierp", 0x2118, false},
    {"real", 0x211C, false},    {"trade", 0x2122, false},  {"alefsym", 0x2135, false}, {"larr", 0x2190, false},
    {"uarr", 0x2191, false},    {"rarr", 0x2192, false},   {"darr", 0x2193, false},    {"harr", 0x2194, false},
    {"crarr", 0x21B5, false},   {"lArr", 0x21D0, false},   {"uArr", 0x21D1, false},    {"rArr", 0x21D2, false},
    {"dArr", 0x21D3, false},    {"hArr", 0x21D4, false},   {"forall", 0x2200, false},  {"part", 0x2202, false},
    {"exist", 0x2203, false},   {"empty", 0x2205, false},  {"nabla", 0x2207, false},   {"isin", 0x2208, false},
    {"notin", 0x2209, false},   {"ni", 0x220B, false},     {"prod", 0x220F, false},    {"sum", 0x2211, false},
    {"minus", 0x2212, false},   {"lowast", 0x2217, false}, {"radic", 0x221A, false},   {"prop", 0x221D, false},
    {"infin", 0x221E, false},   {"ang", 0x2220, false},    {"and", 0x2227, false},     {"or", 0x2228, false},
    {"cap", 0x2229, false},     {"cup", 0x222A, false},    {"int", 0x222B, false},     {"there4", 0x2234, false},
    {"sim", 0x223C, false},     {"cong", 0x2245, false},   {"asymp", 0x2248, false},   {"ne", 0x2260, false},
    {"equiv", 0x2261, false},   {"le", 0x2264, false},     {"ge", 0x2265, false},      {"sub", 0x2282, false},
    {"sup", 0x2283, false},     {"nsub", 0x2284, false},   {"sube", 0x2286, false},    {"supe", 0x2287, false},
    {"oplus", 0x2295, false},   {"otimes", 0x2297, false}, {"perp", 0x22A5, false},    {"sdot", 0x22C5, false},
    {"lceil", 0x2308, false},   {"rceil", 0x2309, false},  {"lfloor", 0x230A, false},  {"rfloor", 0x230B, false},
    {"lang", 0x2329, false},    {"rang", 0x232A, false},   {"loz", 0x25CA, false},     {"star", 0x2606, false},
    {"spades", 0x2660, false},  {"clubs", 0x2663, false},  {"hearts", 0x2665, false},  {"diams", 0x2666, false},
    {"check", 0x2713, false},   {"num", '#', false},       {"period", '.', false},     {"comma", ',', false},
    {"colon", ':', false},      {"semi", ';', false},      {"excl", '!', false},       {"quest", '?', false},
    {"lpar", '(', false},       {"rpar", ')', false},      {"lsqb", '[', false},       {"rsqb", ']', false},
    {"dollar", '$', false},     {"percnt", '%', false},    {"ast", '*', false},        {"plus", '+', false},
    {"equals", '=', false},     {"commat", '@', false},    {"lowbar", '_', false},     {"verbar", '|', false},
    {"sol", '/', false},        {"bsol", '\\', false},     {"grave", '`', false},      {"lcub", '{', false},
    {"rcub", '}', false},       {"Tab", '\t', false},      {"NewLine", '\n', false},   {"half", 0xBD, false},
    {"inodot", 0x131, false},   {"gbreve", 0x11F, false},  {"Gbreve", 0x11E, false},   {"scedil", 0x15F, false},
    {"Scedil", 0x15E, false},   {"ccaron", 0x10D, false},  {"Ccaron", 0x10C, false},   {"zcaron", 0x17E, false},
    {"Zcaron", 0x17D, false},   {"lstrok", 0x142, false},  {"Lstrok", 0x141, false},   {"aogon", 0x105, false},
    {"eogon", 0x119, false},    {"sacute", 0x15B, false},  {"cacute", 0x107, false},   {"nacute", 0x144, false},
    {"zdot", 0x17C, false},     {"Zdot", 0x17B, false},    {"zacute", 0x17A, false},   {"ecaron", 0x11B, false},
    {"rcaron", 0x159, false},   {"uring", 0x16F, false},   {"odblac", 0x151, false},   {"udblac", 0x171, false},
};

// Windows-1252 at 128 to 159; 0 where it has nothing.
constexpr char16_t kWindows1252[32] = {0x20AC, 0,      0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
                                       0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0,      0x17D,  0,
                                       0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                       0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0,      0x17E,  0x178};

std::vector<Named> make_names() {
  std::vector<Named> names(std::begin(kOthers), std::end(kOthers));
  std::string_view rest = kLatin1;
  for (char32_t c = 0xA0; c <= 0xFF; ++c) {
    const size_t space = std::min(rest.find(' '), rest.size());
    names.push_back({rest.substr(0, space), c, true});
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  std::sort(names.begin(), names.end(), [](const Named& a, const Named& b) { return a.name < b.name; });
  return names;
}

const Named* find_name(std::string_view name) {
  static const std::vector<Named> names = make_names();
  const auto found = std::lower_bound(names.begin(), names.end(), name,
                                      [](const Named& row, std::string_view wanted) { return row.name < wanted; });
  return found != names.end() && found->name == name ? &*found : nullptr;
}

bool is_alnum(char c) {
  const unsigned lower = static_cast<unsigned char>(c) | 0x20u;
  return lower - 'a' < 26u || (c >= '0' && c <= '9');
}

int digit_value(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = c | 0x20;
  return base == 16 && lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

char32_t mend(char32_t c) {
  if (c >= 128 && c < 160) return kWindows1252[c - 128] != 0 ? kWindows1252[c - 128] : c;
  const bool surrogate = c >= 0xD800 && c < 0xE000;
  return c == 0 || surrogate || c > 0x10FFFF ? 0xFFFD : c;
}

CharacterReference read_number(std::string_view text) {
  size_t at = 2;
  const int base = text.size() > 2 && (text[2] | 0x20) == 'x' ? 16 : 10;
  if (base == 16) ++at;
  const size_t digits = at;
  char32_t value = 0;
  for (; at < text.size() && digit_value(text[at], base) >= 0; ++at)
    value = std::min<char32_t>(value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(text[at], base)),
                               0x110000);
  if (at == digits) return {};
  if (at < text.size() && text[at] == ';') ++at;
  return {mend(value), at};
}

}  // namespace

CharacterReference read_reference(std::string_view text) {
  if (text.size() < 3) return {};
  if (text[1] == '#') return read_number(text);
  size_t end = 1;
  while (end < text.size() && end <= kEntityMax + 1 && is_alnum(text[end])) ++end;
  if (end < text.size() && text[end] == ';') {
    const Named* found = find_name(text.substr(1, end - 1));
    if (found != nullptr) return {found->code_point, end + 1};
  }
  for (size_t stop = std::min(end, kEntityMax + 1); stop > 2; --stop) {  // "&ampx": the longest that needs no ";"
    const Named* found = find_name(text.substr(1, stop - 1));
    if (found != nullptr && found->bare) return {found->code_point, stop};
  }
  return {};
}

void append_decoded(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t plain = std::min(text.find('&'), text.size());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const CharacterReference reference = read_reference(text);
    if (reference.length == 0) {
      out += '&';
      text.remove_prefix(1);
      continue;
    }
    append_utf8(static_cast<UChar32>(reference.code_point), out);
    text.remove_prefix(reference.length);
  }
}

}  // namespace streamvec
