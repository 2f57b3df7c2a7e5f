#include "streamvec/text/title_text.h"

#include <algorithm>

namespace streamvec {
namespace {

// Letters and digits, ASCII in lower case; other scripts as they are, but for the punctuation of U+2000 to U+206F.
std::string letters_of(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\xE2' && i + 2 < text.size() && (text[i + 1] == '\x80' || text[i + 1] == '\x81')) {
      i += 2;
    } else if ((c >= 'A' && c <= 'Z')) {
      out += static_cast<char>(c | 0x20);
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80) {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view kSeparators[] = {" | ", " - ", " – ", " — ", " :: ", " · ",  " » ", " « ",
                                            " • ", " / ", " : ", " ‹ ", " › ",  " ｜ ", "｜",  " ~ "};

struct Cut {
  size_t at = std::string_view::npos;
  size_t length = 0;
};

Cut last_separator(std::string_view text) {
  Cut best;
  for (const std::string_view separator : kSeparators) {
    const size_t at = text.rfind(separator);
    if (at != text.npos && (best.at == text.npos || at > best.at)) best = {at, separator.size()};
  }
  return best;
}

Cut first_separator(std::string_view text) {
  Cut best;
  for (const std::string_view separator : kSeparators) {
    const size_t at = text.find(separator);
    if (at < best.at) best = {at, separator.size()};
  }
  return best;
}

// Words, taking four bytes of a script without spaces for one.
size_t words_of(std::string_view text) {
  const auto spaces = static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
  const auto high =
      static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }));
  return 1 + std::max(spaces, high / 6);
}

// Without parts at its ends that name the site: known by `site`, or short beside what is left.
std::string_view without_site(std::string_view text, std::string_view site) {
  const std::string site_letters = letters_of(site);
  for (int round = 0; round < 3; ++round) {
    const Cut last = last_separator(text);
    if (last.at == text.npos) break;
    const std::string_view head = text.substr(0, last.at), tail = text.substr(last.at + last.length);
    const bool named = !site_letters.empty() && letters_of(tail) == site_letters;
    if (named || (words_of(tail) <= 4 && words_of(head) >= 3 && words_of(tail) < words_of(head))) {
      text = head;
      continue;
    }
    const Cut first = first_separator(text);
    const std::string_view start = text.substr(0, first.at), rest = text.substr(first.at + first.length);
    const bool starts_named = !site_letters.empty() && letters_of(start) == site_letters;
    if (!starts_named) break;
    text = rest;
  }
  return text;
}

bool holds(std::string_view whole, std::string_view part) {
  const std::string letters = letters_of(part);
  return !letters.empty() && letters_of(whole).find(letters) != std::string::npos;
}

}  // namespace

bool same_words(std::string_view a, std::string_view b) {
  return letters_of(a) == letters_of(b);
}

std::string choose_title(std::string_view og, std::string_view title, std::string_view heading, std::string_view site) {
  const bool is_site = !site.empty() && same_words(heading, site);
  if (!heading.empty() && !is_site && words_of(heading) >= 2 && (holds(og, heading) || holds(title, heading)))
    return std::string(heading);
  if (!og.empty()) return std::string(without_site(og, site));
  if (!title.empty()) return std::string(without_site(title, site));
  return std::string(heading);
}

}  // namespace streamvec
