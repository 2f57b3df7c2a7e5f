// robots.txt as RFC 9309 has it: which paths of a site a crawler may read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {

// Immutable after parse().
class Robots {
 public:
  static constexpr size_t kBytesMax = size_t{500} << 10;  // what comes after is not looked at

  // The rules for `product` ("streamvec"): those of all groups that name it, whatever the case, or else those of all
  // groups for "*". Never fails: lines that are none of the format's are passed over, a rule without a group too, and
  // a byte order mark at the beginning.
  static Robots parse(std::string_view bytes, std::string_view product);
  static Robots allow_all() { return {}; }
  static Robots disallow_all();

  // Whether `target`, path and query of an URL, may be read: the longest rule that matches decides, of an allowing and
  // a forbidding one of equal length the allowing one; none allows. "*" in a rule is any bytes, "$" at its end the end
  // of the target; escapes are compared in normal form. /robots.txt is always allowed.
  bool allows(std::string_view target) const;

  double crawl_delay_s() const { return crawl_delay_s_; }                 // 0 when none is asked for
  const std::vector<std::string>& sitemaps() const { return sitemaps_; }  // as written, 100 at most

 private:
  friend class RobotsParser;
  struct Rule {
    std::string pattern;  // in normal form
    bool allow = false;
  };
  std::vector<Rule> rules_;
  double crawl_delay_s_ = 0;
  std::vector<std::string> sitemaps_;
};

}  // namespace streamvec
