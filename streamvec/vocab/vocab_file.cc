#include "streamvec/vocab/vocab_file.h"

#include <algorithm>
#include <charconv>
#include <istream>
#include <limits>
#include <optional>
#include <ostream>
#include <sstream>
#include <vector>

namespace streamvec {
namespace {

constexpr size_t kLineBytesMax = size_t{16} << 20;

struct Escape {
  char byte, letter;
};
constexpr Escape kEscapes[] = {{'\t', 't'}, {'\n', 'n'}, {'\r', 'r'}, {'\0', '0'}, {'\\', '\\'}, {' ', 's'}};

void append_escaped(std::string_view word, bool escape_space, std::string& out) {
  for (const char byte : word) {
    const auto* escape =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](Escape e) { return e.byte == byte; });
    if (escape == std::end(kEscapes) || (byte == ' ' && !escape_space)) {
      out += byte;
    } else {
      out += '\\';
      out += escape->letter;
    }
  }
}

// False when a backslash is followed by nothing or by a letter that is not ours.
bool unescape(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    const auto* escape =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](Escape e) { return e.letter == text[i]; });
    if (escape == std::end(kEscapes)) return false;
    out += escape->byte;
  }
  return true;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// What is shown of a bad value: enough to find it, not a megabyte of it.
std::string shown(std::string_view text) {
  std::string out = "\"";
  append_escaped(text.substr(0, 40), false, out);
  return out + (text.size() > 40 ? "...\"" : "\"");
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  Status line(std::string_view text) {
    ++number_;
    return number_ == 1 ? header(text) : row(text);
  }
  Status cut_short() const {
    return error(Code::kDataLoss, path_, ":", number_ + 1, ": the line has no end; the file was cut short");
  }
  Status too_long() const {
    return error(Code::kDataLoss, path_, ":", number_ + 1, ": the line is longer than ", kLineBytesMax, " bytes");
  }
  Result<Vocabulary> finish() {
    if (number_ == 0)
      return error(Code::kDataLoss, path_, " is empty; a vocabulary starts with the line \"#word<TAB>count\"");
    STREAMVEC_RETURN_IF_ERROR(add_aliases());
    return std::move(vocabulary_);
  }

 private:
  template <typename... Parts>
  Status bad(const Parts&... parts) const {
    return error(Code::kDataLoss, path_, ":", number_, ": ", parts...);
  }

  Status header(std::string_view text) {
    if (!text.starts_with('#'))
      return bad("a vocabulary starts with the line \"#word<TAB>count\", this one with ", shown(text));
    text.remove_prefix(1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::vector<std::string_view> names = split(text, '\t');
    if (names.size() < 2 || names[0] != "word" || names[1] != "count")
      return bad("the first two columns must be word and count, the header is ", shown(text));
    columns_ = names.size();
    const auto spellings = std::find(names.begin(), names.end(), "spellings");
    if (spellings != names.end()) spellings_column_ = static_cast<size_t>(spellings - names.begin());
    return {};
  }

  Status row(std::string_view text) {
    const std::vector<std::string_view> fields = split(text, '\t');
    if (fields.size() != columns_) return bad("found ", fields.size(), " columns, the header names ", columns_);
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view word, unescaped(fields[0]));
    if (vocabulary_.find(word) != kNoSlot) return bad("the word ", shown(fields[0]), " is there twice");
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, parse_count(fields[1]));
    if (vocabulary_.size() == std::numeric_limits<Slot>::max()) return bad("there are more words than slots");
    const Slot slot = vocabulary_.add(word, count);
    if (!spellings_column_ || fields[*spellings_column_].empty()) return {};
    for (const std::string_view spelling : split(fields[*spellings_column_], ' '))
      aliases_.push_back({std::string(spelling), slot, number_});
    return {};
  }

  // The word is in scratch_ until the next call.
  Result<std::string_view> unescaped(std::string_view field) {
    if (!unescape(field, scratch_)) return bad("unknown escape in ", shown(field));
    if (scratch_.empty()) return bad("a word is empty");
    if (scratch_.size() > Vocabulary::kWordBytesMax)
      return bad("a word has ", scratch_.size(), " bytes, more than ", Vocabulary::kWordBytesMax);
    return std::string_view(scratch_);
  }

  Result<int64_t> parse_count(std::string_view field) const {
    int64_t count = 0;
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), count);
    if (failure != std::errc() || end != field.data() + field.size() || count < 0)
      return bad("the count ", shown(field), " is not a whole number from 0 to 2^63 - 1");
    if (count > std::numeric_limits<int64_t>::max() - vocabulary_.tokens())
      return bad("the counts add up to 2^63 or more");
    return count;
  }

  // After all words, so that an alias that is also a word is known for one wherever that word stands.
  Status add_aliases() {
    for (const PendingAlias& alias : aliases_) {
      number_ = alias.line;
      STREAMVEC_ASSIGN_OR_RETURN(const std::string_view spelling, unescaped(alias.spelling));
      const Slot there = vocabulary_.find_token(spelling);
      if (there != kNoSlot && (there == alias.slot || vocabulary_.word(there) != spelling))
        return bad("the spelling ", shown(alias.spelling), " is there twice");
      vocabulary_.add_alias(spelling, alias.slot);
    }
    return {};
  }

  struct PendingAlias {
    std::string spelling;
    Slot slot;
    int64_t line;
  };
  const std::string& path_;
  int64_t number_ = 0;  // of the line being read
  size_t columns_ = 0;
  std::optional<size_t> spellings_column_;
  std::vector<PendingAlias> aliases_;
  std::string scratch_;
  Vocabulary vocabulary_;
};

// Spellings by slot, in the order they were added.
std::vector<std::vector<int64_t>> aliases_by_slot(const Vocabulary& vocabulary) {
  std::vector<std::vector<int64_t>> lists(vocabulary.alias_count() > 0 ? static_cast<size_t>(vocabulary.size()) : 0);
  for (int64_t i = 0; i < vocabulary.alias_count(); ++i)
    lists[static_cast<size_t>(vocabulary.alias(i).slot)].push_back(i);
  return lists;
}

}  // namespace

void write_vocabulary(const Vocabulary& vocabulary, std::ostream& out, std::string_view last_column) {
  const std::vector<std::vector<int64_t>> aliases = aliases_by_slot(vocabulary);
  const char* const before_last = last_column.empty() ? "" : "\t";
  out << (aliases.empty() ? "#word\tcount" : "#word\tcount\tspellings") << before_last << last_column << '\n';
  std::string line;
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    line.clear();
    append_escaped(vocabulary.word(slot), false, line);
    line += '\t' + std::to_string(vocabulary.count(slot));
    if (!aliases.empty()) line += '\t';
    for (size_t i = 0; !aliases.empty() && i < aliases[static_cast<size_t>(slot)].size(); ++i) {
      if (i > 0) line += ' ';
      append_escaped(vocabulary.alias(aliases[static_cast<size_t>(slot)][i]).spelling, true, line);
    }
    out << line << before_last << '\n';
  }
}

std::string format_vocabulary(const Vocabulary& vocabulary) {
  std::ostringstream out;
  write_vocabulary(vocabulary, out);
  return std::move(out).str();
}

Result<Vocabulary> parse_vocabulary(std::string_view text, const std::string& path) {
  Parser parser(path);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (std::min(end, text.size()) > kLineBytesMax) return parser.too_long();
    if (end == std::string_view::npos) return parser.cut_short();
    STREAMVEC_RETURN_IF_ERROR(parser.line(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return parser.finish();
}

Result<Vocabulary> read_vocabulary(std::istream& in, const std::string& path) {
  Parser parser(path);
  std::string line;
  std::vector<char> block(size_t{64} << 10);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    std::string_view rest(block.data(), static_cast<size_t>(in.gcount()));
    for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      line += rest.substr(0, end);
      STREAMVEC_RETURN_IF_ERROR(parser.line(line));
      line.clear();
    }
    line += rest;
    if (line.size() > kLineBytesMax) return parser.too_long();
  }
  if (in.bad()) return error(Code::kUnavailable, path, ": reading failed after ", line.size(), " bytes of a line");
  if (!line.empty()) return parser.cut_short();
  return parser.finish();
}

}  // namespace streamvec
