#include "streamvec/source/http/robots.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "streamvec/source/feed_text.h"
#include "streamvec/source/http/url.h"
#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

constexpr size_t kPatternBytesMax = 2048;
constexpr size_t kSitemapsMax = 100;

char low(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return low(x) == low(y); });
}

void escape(char c, std::string& out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  ((out += '%') += kDigits[byte >> 4]) += kDigits[byte & 15];
}

// Bytes outside ASCII, blanks, and "*" and "$" where they stand for themselves are escaped, so that a rule and a target
// that mean the same are the same bytes.
std::string normal(std::string_view text, bool pattern) {
  std::string out;
  const std::string clean = normal_escapes(text);
  for (size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    const bool special = pattern && (c == '*' || (c == '$' && i + 1 == clean.size()));
    const bool plain = c > ' ' && c < '\x7f' && c != '*' && c != '$';
    if (special || plain) {
      out += c;
    } else {
      escape(c, out);
    }
  }
  return out;
}

// Each part between stars is sought behind the one before, leftmost first: what is left is then longest, so nothing
// has to be tried twice. Only the part before a "$" has to stand at the end.
bool matches(std::string_view pattern, std::string_view target) {
  const bool anchored = pattern.ends_with('$');
  if (anchored) pattern.remove_suffix(1);
  const size_t first = std::min(pattern.find('*'), pattern.size());
  if (!target.starts_with(pattern.substr(0, first))) return false;
  if (first == pattern.size()) return !anchored || target.size() == first;
  target.remove_prefix(first);
  pattern.remove_prefix(first + 1);
  for (size_t star; (star = pattern.find('*')) != std::string_view::npos; pattern.remove_prefix(star + 1)) {
    const size_t at = target.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    target.remove_prefix(at + star);
  }
  return anchored ? target.ends_with(pattern) : target.find(pattern) != std::string_view::npos;
}

// "streamvec" of "StreamVec/1.0 (x)".
std::string_view product_of(std::string_view value) {
  const auto in_token = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  return value.substr(0, static_cast<size_t>(std::find_if_not(value.begin(), value.end(), in_token) - value.begin()));
}

}  // namespace

// Gathers the rules for the product and those for everybody side by side.
class RobotsParser {
 public:
  explicit RobotsParser(std::string_view product) : product_(product) {}

  void line(std::string_view text) {
    text = text.substr(0, text.find('#'));
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = feed::trimmed(text.substr(0, colon)), value = feed::trimmed(text.substr(colon + 1));
    if (same_word(key, "user-agent") || same_word(key, "useragent")) return agent(value);
    if (same_word(key, "allow")) return rule(value, true);
    if (same_word(key, "disallow")) return rule(value, false);
    if (same_word(key, "crawl-delay")) return delay(value);
    if (same_word(key, "sitemap") && sitemaps_.size() < kSitemapsMax && value.size() <= kUrlBytesMax)
      sitemaps_.emplace_back(value);
  }

  Robots finish() && {
    Robots chosen = std::move(named_ ? for_product_ : for_all_);
    chosen.sitemaps_ = std::move(sitemaps_);
    return chosen;
  }

 private:
  void agent(std::string_view value) {
    if (!in_agents_) product_here_ = all_here_ = false;
    in_agents_ = true;
    if (value.starts_with('*')) all_here_ = true;
    if (same_word(product_of(value), product_)) product_here_ = named_ = true;
  }
  void rule(std::string_view value, bool allow) {
    in_agents_ = false;
    if (value.empty() || value.size() > kPatternBytesMax) return;
    add([&](Robots& group) { group.rules_.push_back({normal(value, true), allow}); });
  }
  void delay(std::string_view value) {
    in_agents_ = false;
    double seconds = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (failure != std::errc() || !(seconds > 0) || !std::isfinite(seconds)) return;
    add([&](Robots& group) { group.crawl_delay_s_ = std::max(group.crawl_delay_s_, seconds); });
  }
  template <typename Change>
  void add(Change change) {
    if (product_here_) change(for_product_);
    if (all_here_) change(for_all_);
  }

  std::string_view product_;
  Robots for_product_, for_all_;
  bool named_ = false;                            // some group names the product
  bool in_agents_ = false;                        // in the user-agent lines that open a group
  bool product_here_ = false, all_here_ = false;  // whom the group is for
  std::vector<std::string> sitemaps_;
};

Robots Robots::parse(std::string_view bytes, std::string_view product) {
  bytes = bytes.substr(0, kBytesMax);
  bytes.remove_prefix(utf8_mark_bytes(bytes));
  RobotsParser parser(product);
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    parser.line(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return std::move(parser).finish();
}

Robots Robots::disallow_all() {
  Robots robots;
  robots.rules_.push_back({"/", false});
  return robots;
}

bool Robots::allows(std::string_view target) const {
  const std::string plain = normal(target, false);
  if (plain == "/robots.txt") return true;
  const Rule* decisive = nullptr;
  for (const Rule& rule : rules_) {
    if (decisive != nullptr && (rule.pattern.size() < decisive->pattern.size() ||
                                (rule.pattern.size() == decisive->pattern.size() && !rule.allow)))
      continue;
    if (matches(rule.pattern, plain)) decisive = &rule;
  }
  return decisive == nullptr || decisive->allow;
}

}  // namespace streamvec
