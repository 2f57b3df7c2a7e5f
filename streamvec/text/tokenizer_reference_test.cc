// The tokeniser against a slow one that is easy to believe: normalise the whole text with ICU, then match words with a
// regular expression over character classes.
#include <gtest/gtest.h>
#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <iterator>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/text/testing.h"
#include "streamvec/text/tokenizer.h"

namespace streamvec {
namespace {

using Split = TokenizerOptions::Split;
using Sentences = std::vector<std::vector<std::string>>;

// One letter per kind: L letter, D digit, J and P joiners of letters and of digits, X mark, U unspaced, N line end, S
// rest.
char kind(UChar32 c, Split split) {
  if (split == Split::kWhitespace) return c == '\n' ? 'N' : c == ' ' || (c >= 9 && c <= 13) ? 'S' : 'L';
  static const icu::UnicodeString apostrophes(u"'\u2019\uFF07"), joiners(u"_\uFF3F\u05F3\u05F4"),
      points(u".,\uFF0E\uFF0C"), lines(u"\n\r\u0085\u2028\u2029");
  if (apostrophes.indexOf(c) >= 0) return 'A';
  if (joiners.indexOf(c) >= 0) return 'J';
  if (points.indexOf(c) >= 0) return 'P';
  if (lines.indexOf(c) >= 0) return 'N';
  UErrorCode status = U_ZERO_ERROR;
  static const icu::UnicodeSet digits(u"[:Nd:]", status), marks(u"[[:M:][:Cf:]-[\u200B]]", status),
      letters(u"[[:L:][:N:]]", status), hangul(u"[:Hang:]", status),
      unspaced(u"[[:Han:][:scx=Hira:][:scx=Kana:][:lb=SA:]]", status);
  EXPECT_TRUE(U_SUCCESS(status));
  if (digits.contains(c)) return 'D';
  if (letters.contains(c)) return hangul.contains(c) ? 'H' : unspaced.contains(c) ? 'U' : 'L';
  return marks.contains(c) ? 'X' : 'S';
}

const icu::Normalizer2& nfkc(bool fold) {
  UErrorCode status = U_ZERO_ERROR;
  const auto* instance =
      fold ? icu::Normalizer2::getNFKCCasefoldInstance(status) : icu::Normalizer2::getNFKCInstance(status);
  return *instance;
}

bool exempt(UChar32 c) {
  return c == 0x0E33 || c == 0x0EB3 || (c >= 0x3131 && c <= 0x318E);
}

// What normalisation is not to see: invisible code points, symbols, and numbers that would fall apart.
icu::UnicodeString prepare(const icu::UnicodeString& text, const TokenizerOptions& options) {
  icu::UnicodeString out;
  UErrorCode status = U_ZERO_ERROR;
  const bool by_words = options.split == Split::kWords;
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    UChar32 c = text.char32At(i);
    if (c == 0) continue;
    if (options.nfkc && u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT) && !(by_words && c == 0x200B))
      continue;
    if (by_words && kind(c, options.split) == 'S') c = ' ';
    if (by_words && options.nfkc && c == 0x2019) c = '\'';
    if (by_words && options.nfkc && !exempt(c) && kind(c, options.split) != 'N') {
      const icu::UnicodeString alone = nfkc(options.fold_case).normalize(icu::UnicodeString(c), status);
      for (int32_t k = 0; k < alone.length(); k = alone.moveIndex32(k, 1))
        if (kind(alone.char32At(k), options.split) == 'S') c = ' ';
    }
    out.append(c);
  }
  return out;
}

icu::UnicodeString normalize(const icu::UnicodeString& text, const TokenizerOptions& options) {
  UErrorCode status = U_ZERO_ERROR;
  if (options.nfkc) {
    static const icu::UnicodeSet whole(u"[^\u0E33\u0EB3\u3131-\u318E]", status);
    icu::UnicodeString out;
    return icu::FilteredNormalizer2(nfkc(options.fold_case), whole).normalize(text, out, status);
  }
  return options.fold_case ? icu::UnicodeString(text).foldCase() : text;
}

std::string utf8(const icu::UnicodeString& text) {
  std::string out;
  return text.toUTF8String(out);
}

void cut_unspaced(const icu::UnicodeString& run, std::vector<std::string>& words) {
  UErrorCode status = U_ZERO_ERROR;
  static const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
  breaks->setText(run);
  for (int32_t begin = 0, end; (end = breaks->next()) != icu::BreakIterator::DONE; begin = end)
    words.push_back(utf8(run.tempSubStringBetween(begin, end)));
}

Sentences reference(const std::string& bytes, const TokenizerOptions& options) {
  icu::UnicodeString text = icu::UnicodeString::fromUTF8(bytes);  // ill-formed parts become U+FFFD
  if (text.startsWith(u"\uFEFF")) text.remove(0, 1);
  text = normalize(prepare(text, options), options);
  std::string kinds;
  std::vector<int32_t> offsets;
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    kinds += kind(text.char32At(i), options.split);
    offsets.push_back(i);
  }
  offsets.push_back(text.length());
  static const std::regex pattern(
      "N|U[UX]*|(?:LX*(?:J(?=[LHD])|A(?=[LD]))?|HX*(?:J(?=[LHD]))?|DX*(?:J(?=[LHD])|A(?=[LD])|P(?=D))?)+");
  Sentences sentences(1);
  for (std::sregex_iterator match(kinds.begin(), kinds.end(), pattern), end; match != end; ++match) {
    const auto begin = static_cast<size_t>(match->position());
    const auto last = begin + static_cast<size_t>(match->length());
    const icu::UnicodeString word = text.tempSubStringBetween(offsets[begin], offsets[last]);
    if (kinds[begin] == 'U')
      cut_unspaced(word, sentences.back());
    else if (kinds[begin] != 'N')
      sentences.back().push_back(utf8(word));
    else if (!sentences.back().empty())
      sentences.emplace_back();
  }
  if (sentences.back().empty()) sentences.pop_back();
  return sentences;
}

Sentences fast(Tokenizer& tokenizer, const std::string& text) {
  Tokens tokens;
  tokenizer.tokenize(text, tokens);
  EXPECT_EQ(tokens.words_dropped, 0);
  Sentences sentences;
  auto begin = tokens.words.begin();
  for (const int32_t end : tokens.sentence_ends) {
    sentences.emplace_back(begin, tokens.words.begin() + end);
    begin = tokens.words.begin() + end;
  }
  return sentences;
}

void append(UChar32 c, std::string& text) {
  icu::UnicodeString(c).toUTF8String(text);
}

// Characters that meet each other in real text and those that make trouble together; {first, last, weight}.
struct Range {
  UChar32 first, last;
  uint32_t weight;
};
constexpr Range kRanges[] = {
    {'a', 'z', 30},        {'A', 'Z', 10},        {'0', '9', 10},         {' ', ' ', 20},        {'!', '/', 12},
    {'\'', '\'', 6},       {'_', '_', 3},         {'.', '.', 5},          {'\n', '\n', 2},       {0, 0x20, 4},
    {0x7F, 0xFF, 10},      {0x100, 0x24F, 6},     {0x2B0, 0x36F, 8},      {0x300, 0x345, 8},     {0x370, 0x3FF, 6},
    {0x400, 0x4FF, 8},     {0x590, 0x6FF, 6},     {0x900, 0x97F, 6},      {0xE00, 0xEFF, 6},     {0x1000, 0x109F, 3},
    {0x1100, 0x11FF, 8},   {0x1780, 0x17FF, 3},   {0x1E00, 0x1FFF, 6},    {0x2000, 0x206F, 12},  {0x2019, 0x2019, 4},
    {0x2070, 0x218F, 4},   {0x2460, 0x24FF, 2},   {0x3000, 0x30FF, 10},   {0x3130, 0x33FF, 4},   {0x4E00, 0x9FFF, 10},
    {0xAC00, 0xD7A3, 20},  {0xF900, 0xFFFD, 8},   {0x10000, 0x10FFFF, 3}, {0x1D100, 0x1D7FF, 4}, {0x1F100, 0x1F6FF, 5},
    {0x20000, 0x2FA1F, 3}, {0xE0000, 0xE01FF, 2},
};

UChar32 draw(Random& random) {
  static const uint32_t total = [] {
    uint32_t sum = 0;
    for (const Range& range : kRanges) sum += range.weight;
    return sum;
  }();
  uint32_t left = random.below(total);
  const Range* range = kRanges;
  while (left >= range->weight) left -= (range++)->weight;
  return range->first + static_cast<UChar32>(random.below(static_cast<uint32_t>(range->last - range->first + 1)));
}

// Stays with a script for a few characters, as text does; now and then a byte that is no UTF-8.
std::string random_text(Random& random) {
  std::string text;
  for (uint32_t left = random.below(250); left > 0; --left) {
    const UChar32 c = draw(random);
    for (uint32_t near = random.below(4) + 1; near > 0; --near) append(c + static_cast<UChar32>(random.below(3)), text);
    if (random.below(40) == 0) text += static_cast<char>(0x80 + random.below(128));
    if (random.below(40) == 0) text.append(random.below(200), random.below(2) ? ' ' : 'k');
  }
  return text;
}

TEST(TokenizerReference, RandomMixedTextGivesTheSameWordsAndSentences) {
  Random random(20240229);
  for (const TokenizerOptions& options : all_options(100'000)) {
    Tokenizer tokenizer(options);
    for (int round = 0; round < 120; ++round) {
      const std::string text = random_text(random);
      ASSERT_EQ(fast(tokenizer, text), reference(text, options))
          << "words " << (options.split == Split::kWords) << " fold " << options.fold_case << " nfkc " << options.nfkc
          << "\n"
          << text;
    }
  }
}

TEST(TokenizerReference, EveryAssignedCodePointInsideAndBesideWordsGivesTheSame) {
  for (const TokenizerOptions& options : all_options(100'000)) {
    Tokenizer tokenizer(options);
    std::string text;
    int count = 0;
    for (UChar32 c = 1; c <= 0x10FFFF; ++c) {
      const int8_t category = u_charType(c);
      if (category == U_UNASSIGNED || category == U_PRIVATE_USE_CHAR || category == U_SURROGATE) continue;
      // Of the large uniform blocks every 16th is enough.
      const bool large = (c >= 0x3400 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7A4) || (c >= 0x10000 && !u_islower(c));
      if (large && c % 16 != 0) continue;
      text += 'A';
      append(c, text);
      text += "1 ";
      append(c, text);
      text += "\u0301'\n";
      if (++count % 64 != 0) continue;
      ASSERT_EQ(fast(tokenizer, text), reference(text, options)) << text;
      text.clear();
    }
  }
}

}  // namespace
}  // namespace streamvec
