#include "streamvec/text/tokenizer.h"

#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "streamvec/text/byte_classes.h"
#include "streamvec/text/code_points.h"
#include "streamvec/text/word_builder.h"

namespace streamvec {
namespace {

using Split = TokenizerOptions::Split;

constexpr UChar32 kReplacement = 0xFFFD;
constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A letter with more bytes of marks than this is not kept: ICU sorts marks by insertion, in quadratic time.
constexpr size_t kSegmentBytesMax = 4096;

constexpr int64_t kWindowBlocks = 64;

// What the ASCII walk needs of 64 bytes, with the rules for apostrophes and such already applied.
struct WordBits {
  uint64_t word;
  uint64_t upper;
  uint64_t line;
  uint64_t special;  // here the walk by code points takes over
};

WordBits whitespace_bits(const ByteBlock& block) {
  return {~(block.white | block.special), block.upper, block.line_feed, block.special};
}

// Bits of `x` moved so that each speaks of the byte before (after) it.
uint64_t before(uint64_t x, uint64_t previous) {
  return x << 1 | previous >> 63;
}
uint64_t after(uint64_t x, uint64_t next) {
  return x >> 1 | next << 63;
}

WordBits word_bits(const ByteBlock& previous, const ByteBlock& block, const ByteBlock& next) {
  const uint64_t joined_letters = block.joiner & before(block.alnum, previous.alnum) & after(block.alnum, next.alnum);
  const uint64_t joined_digits = block.point & before(block.digit, previous.digit) & after(block.digit, next.digit);
  // Whether a joiner before a special byte joins is for the walk by code points to say.
  const uint64_t undecided = (block.joiner | block.point) & after(block.special, next.special);
  return {block.alnum | joined_letters | joined_digits, block.upper, block.line_feed | block.carriage,
          block.special | undecided};
}

// The bits of a few thousand bytes of text, made together because vector code likes long strides.
class Window {
 public:
  explicit Window(Split split) : split_(split) {}

  size_t begin() const { return begin_; }
  size_t end() const { return end_; }
  void clear() { begin_ = end_ = 0; }
  const WordBits& bits(size_t pos) const { return bits_[(pos - begin_) / kByteBlockBytes]; }

  // Covers the text from `pos` on. `inside`: the byte before `pos` is seen by the rules (else it parts words).
  void fill(std::string_view text, size_t pos, bool inside) {
    const ByteBlock previous = inside ? blocks_[block_count_] : ByteBlock{};
    begin_ = pos;
    end_ = std::min(text.size(), pos + static_cast<size_t>(kWindowBlocks * kByteBlockBytes));
    block_count_ = (end_ - begin_ + kByteBlockBytes - 1) / kByteBlockBytes;
    blocks_[0] = previous;
    classify(text.substr(pos, (kWindowBlocks + 1) * kByteBlockBytes));
    for (size_t i = 1; i <= block_count_; ++i)
      bits_[i - 1] =
          split_ == Split::kWords ? word_bits(blocks_[i - 1], blocks_[i], blocks_[i + 1]) : whitespace_bits(blocks_[i]);
  }

 private:
  // Into blocks_[1] and on, with one block past the window for the rules to look at. Past the text there are spaces.
  void classify(std::string_view text) {
    const size_t whole = text.size() / kByteBlockBytes;
    classify_bytes(text.data(), static_cast<int64_t>(whole), blocks_.data() + 1);
    if (whole == kWindowBlocks + 1) return;
    std::array<char, kByteBlockBytes> rest;
    rest.fill(' ');
    std::copy(text.begin() + static_cast<std::ptrdiff_t>(whole * kByteBlockBytes), text.end(), rest.begin());
    classify_bytes(rest.data(), 1, blocks_.data() + 1 + whole);
    if (whole < kWindowBlocks) blocks_[whole + 2] = {};
  }

  const Split split_;
  size_t begin_ = 0, end_ = 0;
  size_t block_count_ = 0;
  std::array<ByteBlock, kWindowBlocks + 2> blocks_ = {};  // the one before, the window's, the one after
  std::array<WordBits, kWindowBlocks> bits_ = {};
};

}  // namespace

void Tokens::clear() {
  words.clear();
  sentence_ends.clear();
  bytes_replaced = words_dropped = 0;
  storage.clear();
}

// Two walks take turns: one over bit maps, for words of ASCII; one over code points, for the words that hold others.
// They change places only between words, so that each word is one walk's alone.
class Tokenizer::Walk {
 public:
  explicit Walk(const TokenizerOptions& options)
      : options_(options), window_(options.split), code_points_(options), builder_(options.word_bytes_max) {}

  void run(std::string_view text, Tokens& out) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    text_ = text;
    out_ = &out;
    builder_.start(out);
    window_.clear();
    for (size_t pos = 0; pos < text_.size();) {
      pos = walk_ascii(pos);
      if (pos < text_.size()) pos = walk_code_points(pos);
    }
    builder_.end_sentence();
  }

 private:
  struct CodePoint {
    UChar32 c;
    CharInfo info;
    size_t begin, end;
    bool ill_formed;
  };

  size_t walk_ascii(size_t pos);
  size_t walk_code_points(size_t pos);
  size_t skip_plain_letters(const CodePoint& first);
  bool stands_alone(const CodePoint& point);
  CodePoint decode(size_t pos);
  void consume(const CodePoint& point);
  void add(const CodePoint& point);
  size_t add_segment(CodePoint point);
  void add_normalized(std::u16string_view units, std::string_view raw);

  const TokenizerOptions options_;
  std::string_view text_;
  Tokens* out_ = nullptr;
  Window window_;
  CodePoints code_points_;
  WordBuilder builder_;
  std::u16string segment_;
  std::string normalized_;
};

// From `pos`, which is between words, to the text's end or to the start of a word (or the place between words) where
// code points have to be looked at.
size_t Tokenizer::Walk::walk_ascii(size_t pos) {
  constexpr size_t kNone = ~size_t{0};
  size_t word_begin = kNone;
  bool upper = false;  // among the word's bytes of earlier blocks
  while (pos < text_.size()) {
    if (pos >= window_.end()) window_.fill(text_, pos, word_begin != kNone);
    const WordBits& bits = window_.bits(pos);
    const size_t block_begin = pos - (pos - window_.begin()) % kByteBlockBytes;
    const auto skipped = static_cast<unsigned>(pos - block_begin);
    const uint64_t special = bits.special >> skipped << skipped;
    // Bits of this block that count: from pos to the first special byte.
    uint64_t live = ~uint64_t{0} << skipped;
    if (special != 0) live &= (special & -special) - 1;
    const uint64_t word = bits.word & live;
    const uint64_t line = bits.line & live;
    // A word starts or ends where a bit differs from the one before.
    const uint64_t open = word_begin != kNone ? uint64_t{1} << skipped : 0;
    uint64_t edges = ((word ^ (word << 1 | open)) | line) & live;
    uint64_t word_upper_from = ~uint64_t{0};
    for (; edges != 0; edges &= edges - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(edges));
      const size_t here = block_begin + bit;
      if (word_begin != kNone) {
        const uint64_t below = (uint64_t{1} << bit) - 1;
        const bool capitals = upper || (bits.upper & below & word_upper_from) != 0;
        builder_.add_ascii(text_.substr(word_begin, here - word_begin), capitals && options_.fold_case);
        word_begin = kNone;
        upper = false;
      } else if (word >> bit & 1) {
        word_begin = here;
        word_upper_from = ~uint64_t{0} << bit;
      }
      if (line >> bit & 1) builder_.end_sentence();
    }
    if (special != 0) {
      const size_t here = block_begin + static_cast<unsigned>(std::countr_zero(special));
      return word_begin != kNone ? word_begin : here;
    }
    if (word_begin != kNone) upper |= (bits.upper & word_upper_from & live) != 0;
    pos = block_begin + kByteBlockBytes;
  }
  if (word_begin != kNone) builder_.add_ascii(text_.substr(word_begin), upper && options_.fold_case);
  return text_.size();
}

// From `pos`, which is between words, to the next place between words that is followed by ASCII, or the text's end.
size_t Tokenizer::Walk::walk_code_points(size_t pos) {
  while (pos < text_.size()) {
    const CodePoint point = decode(pos);
    const CharClass cls = point.info.cls();
    if (const size_t end = skip_plain_letters(point); end > pos) {
      const std::string_view raw = text_.substr(pos, end - pos);
      builder_.add({cls, raw, raw});
      pos = end;
      continue;
    }
    pos = point.end;
    if (cls == CharClass::kSeparator || cls == CharClass::kLineEnd) {
      consume(point);
      cls == CharClass::kLineEnd ? builder_.end_sentence() : builder_.finish();
      if (pos < text_.size() && static_cast<signed char>(text_[pos]) > 0) return pos;
    } else if (stands_alone(point)) {
      add(point);
    } else {
      pos = add_segment(point);
    }
  }
  builder_.finish();
  return text_.size();
}

// Whether what normalisation makes of `point` is in the table, whatever stands around it.
bool Tokenizer::Walk::stands_alone(const CodePoint& point) {
  if (point.info.has(CharInfo::kMixed)) return false;
  if (point.info.has(CharInfo::kAlone) || point.end == text_.size()) return true;
  return !decode(point.end).info.has(CharInfo::kAttached);
}

// Returns where the letters of one class end that start with `first` and that normalisation leaves as they are, which
// is most of most texts; first.begin when it is none.
size_t Tokenizer::Walk::skip_plain_letters(const CodePoint& first) {
  if (!first.info.plain_letter() || first.ill_formed) return first.begin;
  size_t last = first.begin;  // what is attached to the last letter may change it
  size_t pos = first.end;
  for (size_t end = pos; pos < text_.size(); last = std::exchange(pos, end)) {
    UChar32 c;
    U8_NEXT(text_.data(), end, text_.size(), c);
    if (c < 0) return pos;  // ill-formed
    const CharInfo info = code_points_.info(c);
    if (info != first.info) return info.has(CharInfo::kAttached) ? last : pos;
  }
  return pos;
}

Tokenizer::Walk::CodePoint Tokenizer::Walk::decode(size_t pos) {
  size_t end = pos;
  UChar32 c;
  U8_NEXT(text_.data(), end, text_.size(), c);
  const bool ill_formed = c < 0;
  if (ill_formed) c = kReplacement;
  return {c, code_points_.info(c), pos, end, ill_formed};
}

// Each code point passes here once (decode() may look at one twice).
void Tokenizer::Walk::consume(const CodePoint& point) {
  if (point.ill_formed || point.c == 0) out_->bytes_replaced += static_cast<int64_t>(point.end - point.begin);
}

void Tokenizer::Walk::add(const CodePoint& point) {
  consume(point);
  const std::string_view raw = text_.substr(point.begin, point.end - point.begin);
  std::string_view bytes = raw;
  if (point.info.has(CharInfo::kChanged))
    bytes = code_points_.replacement(point.c);
  else if (point.ill_formed)
    bytes = kReplacementBytes;
  builder_.add({point.info.cls(), raw, bytes});
}

// Normalises `point` together with what is attached to it and returns where that ends.
size_t Tokenizer::Walk::add_segment(CodePoint point) {
  const size_t begin = point.begin;
  const CharInfo first = point.info;
  segment_.clear();
  size_t end = begin;
  do {
    consume(point);
    if (point.end - begin <= kSegmentBytesMax) code_points_.append(point.c, segment_);
    end = point.end;
    if (end == text_.size() || first.has(CharInfo::kAlone)) break;
    point = decode(end);
  } while (point.info.has(CharInfo::kAttached));
  const std::string_view raw = text_.substr(begin, end - begin);
  if (raw.size() > kSegmentBytesMax)
    builder_.add_overlong(first.cls(), raw);
  else
    add_normalized(code_points_.normalize(segment_), raw);
  return end;
}

void Tokenizer::Walk::add_normalized(std::u16string_view units, std::string_view raw) {
  normalized_.clear();
  for (size_t i = 0; i < units.size();) {
    UChar32 c;
    U16_NEXT(units.data(), i, units.size(), c);
    append_utf8(c, normalized_);
  }
  const bool same = normalized_ == raw;
  const std::string_view bytes = same ? raw : std::string_view(normalized_);
  for (size_t i = 0, begin = 0; i < bytes.size(); begin = i) {
    UChar32 c;
    U8_NEXT_UNSAFE(bytes.data(), i, c);
    const std::string_view part = bytes.substr(begin, i - begin);
    builder_.add({char_class(c, options_.split), same ? part : raw, part});
  }
}

Tokenizer::Tokenizer(TokenizerOptions options) : walk_(std::make_unique<Walk>(options)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

void Tokenizer::tokenize(std::string_view text, Tokens& out) {
  STREAMVEC_CHECK(text.size() < (uint64_t{1} << 32));
  out.clear();
  walk_->run(text, out);
}

}  // namespace streamvec
