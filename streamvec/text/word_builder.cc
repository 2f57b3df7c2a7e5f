#include "streamvec/text/word_builder.h"

#include <algorithm>
#include <cstring>

namespace streamvec {
namespace {

// A longer run without spaces is cut there: bounds memory and the dictionary's work; sentences are far shorter.
constexpr size_t kUnspacedBytesMax = 4096;

bool is_word_start(CharClass cls) {
  return cls == CharClass::kLetter || cls == CharClass::kHangul || cls == CharClass::kDigit;
}

// Capitals to small letters in all bytes of an ASCII word at once: bit 7 of `low + ...` tells the range a byte is in.
uint64_t fold_ascii(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  const uint64_t from_a = bytes + kOnes * (0x80 - 'A');
  const uint64_t past_z = bytes + kOnes * (0x80 - 'Z' - 1);
  return bytes | (((from_a & ~past_z) & (kOnes * 0x80)) >> 2);
}

}  // namespace

WordBuilder::WordBuilder(int32_t word_bytes_max)
    : word_bytes_max_(static_cast<size_t>(std::max(word_bytes_max, 1))),
      piece_bytes_max_(std::max(word_bytes_max_, 2 * kUnspacedBytesMax)) {}

void WordBuilder::add_ascii(std::string_view word, bool fold) {
  if (word.size() > word_bytes_max_) {
    ++out_->words_dropped;
    return;
  }
  if (fold) {
    char* copy = out_->storage.allocate(word.size());
    const size_t whole = word.size() & ~size_t{7};
    uint64_t bytes = 0;
    for (size_t i = 0; i < whole; i += 8) {
      std::memcpy(&bytes, word.data() + i, 8);
      bytes = fold_ascii(bytes);
      std::memcpy(copy + i, &bytes, 8);
    }
    bytes = 0;
    std::memcpy(&bytes, word.data() + whole, word.size() - whole);
    bytes = fold_ascii(bytes);
    std::memcpy(copy + whole, &bytes, 8);
    word = {copy, word.size()};
  }
  out_->words.push_back(word);
}

void WordBuilder::add(const Character& character) {
  if (state_ == State::kWord) return extend_word(character);
  const bool unspaced = character.cls == CharClass::kUnspaced;
  if (state_ == State::kUnspaced) {
    if ((unspaced && piece().size() < kUnspacedBytesMax) || character.cls == CharClass::kExtend)
      return append(character);
    finish();
  }
  if (unspaced) return begin(State::kUnspaced, character);
  if (is_word_start(character.cls)) begin(State::kWord, character);
}

void WordBuilder::extend_word(const Character& character) {
  switch (character.cls) {
    case CharClass::kLetter:
    case CharClass::kHangul:
    case CharClass::kDigit:
      if (joiner_waits_ && !joins(character.cls)) {
        finish();
        return begin(State::kWord, character);
      }
      return append(character);
    case CharClass::kApostrophe:
    case CharClass::kUnderscore:
    case CharClass::kPoint:
      return add_joiner(character);
    case CharClass::kExtend:
      if (!joiner_waits_) return append(character);
      return finish();
    case CharClass::kUnspaced:
      finish();
      return begin(State::kUnspaced, character);
    case CharClass::kSeparator:
    case CharClass::kLineEnd:
    case CharClass::kUnknown:
      return finish();
  }
}

bool WordBuilder::joins(CharClass cls) const {
  switch (joiner_.cls) {
    case CharClass::kApostrophe:
      return last_ != CharClass::kHangul && cls != CharClass::kHangul;
    case CharClass::kPoint:
      return last_ == CharClass::kDigit && cls == CharClass::kDigit;
    default:
      return true;
  }
}

void WordBuilder::add_joiner(const Character& character) {
  if (joiner_waits_) return finish();
  joiner_waits_ = true;
  joiner_ = character;
  if (character.bytes.data() == character.raw.data()) return;
  STREAMVEC_CHECK(character.bytes.size() <= sizeof(joiner_bytes_));
  std::memcpy(joiner_bytes_, character.bytes.data(), character.bytes.size());
  joiner_.bytes = {joiner_bytes_, character.bytes.size()};
}

void WordBuilder::begin(State state, const Character& character) {
  state_ = state;
  raw_ = character.raw.substr(0, 0);
  changed_ = overlong_ = joiner_waits_ = false;
  append(character);
}

// Bytes stay a view as long as each character is unchanged and follows the one before without a gap.
void WordBuilder::append(const Character& character) {
  if (joiner_waits_) {
    joiner_waits_ = false;
    append(joiner_);
  }
  const bool in_place =
      character.bytes.data() == character.raw.data() && character.raw.data() == raw_.data() + raw_.size();
  if (changed_ || !in_place) {
    change();
    buffer_.append(character.bytes);
  }
  raw_ = {raw_.data(), static_cast<size_t>(character.raw.data() + character.raw.size() - raw_.data())};
  if (piece().size() > piece_bytes_max_) drop_piece();
  if (character.cls != CharClass::kExtend) last_ = character.cls;
}

void WordBuilder::change() {
  if (changed_) return;
  changed_ = true;
  buffer_.assign(raw_);
}

// The word goes on, but its bytes are no longer kept.
void WordBuilder::drop_piece() {
  overlong_ = changed_ = true;
  buffer_.clear();
}

void WordBuilder::add_overlong(CharClass cls, std::string_view raw) {
  if (state_ != State::kWord || cls == CharClass::kUnspaced) {
    finish();
    if (!is_word_start(cls) && cls != CharClass::kUnspaced) return;
    begin(State::kWord, {cls, raw, raw});
  }
  drop_piece();
}

std::string_view WordBuilder::piece() const {
  return changed_ ? std::string_view(buffer_) : raw_;
}

void WordBuilder::finish() {
  if (state_ == State::kNone) return;
  const bool unspaced = state_ == State::kUnspaced;
  state_ = State::kNone;
  joiner_waits_ = false;
  if (overlong_) {
    ++out_->words_dropped;
  } else if (unspaced) {
    emit_unspaced();
  } else {
    emit(piece());
  }
}

void WordBuilder::emit(std::string_view word) {
  if (word.size() > word_bytes_max_) {
    ++out_->words_dropped;
    return;
  }
  out_->words.push_back(changed_ ? out_->storage.copy(word) : word);
}

void WordBuilder::emit_unspaced() {
  const std::string_view run = piece();
  breaker_.find_ends(run, ends_);
  size_t begin = 0;
  for (const size_t end : ends_) {
    emit(run.substr(begin, end - begin));
    begin = end;
  }
}

void WordBuilder::end_sentence() {
  finish();
  const auto end = static_cast<int32_t>(out_->words.size());
  const int32_t last = out_->sentence_ends.empty() ? 0 : out_->sentence_ends.back();
  if (end > last) out_->sentence_ends.push_back(end);
}

}  // namespace streamvec
