// How many records were left out, and why: for a source's notes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

class RecordCounts {
 public:
  void good() { ++good_; }
  // A record that RecordFormat refused. The first reason of each kind is kept.
  void bad(const Status& why) {
    const bool without_text = why.code() == Code::kNotFound;
    ++(without_text ? without_text_ : bad_);
    std::string& reason = without_text ? without_text_reason_ : bad_reason_;
    if (reason.empty()) reason = why.message();
  }

  int64_t good_count() const { return good_; }
  int64_t bad_count() const { return bad_; }
  int64_t without_text_count() const { return without_text_; }
  const std::string& first_reason() const { return bad_reason_.empty() ? without_text_reason_ : bad_reason_; }
  std::vector<std::string> notes(const std::string& name) const {
    std::vector<std::string> lines;
    const int64_t all = good_ + bad_ + without_text_;
    if (bad_ > 0) lines.push_back(line(name, bad_, all, " are bad and were left out; the first: ", bad_reason_));
    if (without_text_ > 0)
      lines.push_back(line(name, without_text_, all, " have no text; the first: ", without_text_reason_));
    return lines;
  }

 private:
  static std::string line(const std::string& name, int64_t count, int64_t all, const char* what,
                          const std::string& reason) {
    return name + ": " + std::to_string(count) + " of " + std::to_string(all) + " records" + what + reason;
  }

  int64_t good_ = 0, bad_ = 0, without_text_ = 0;
  std::string bad_reason_, without_text_reason_;
};

}  // namespace streamvec
