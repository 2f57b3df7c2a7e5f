// From a stream's records to documents; what is no record is counted and passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/source/record.h"
#include "streamvec/source/source.h"

namespace streamvec {

class RecordIntake {
 public:
  explicit RecordIntake(RecordFormat format) : format_(std::move(format)) {}

  // Sets all of `out` but its cursor; false when there is nothing to hand out.
  bool take(std::string_view record, Document& out) {
    const Status status = format_.read(record, out);
    if (status.ok() && (out.deleted || !out.text.empty())) return ++taken_ > 0;
    ++(status.ok() || status.code() == Code::kNotFound ? without_text_ : bad_);
    return false;
  }
  void count_bad(int64_t count) { bad_ += count; }
  // "NAME: 3 records could not be read". Records about something else are worth a line only when all are.
  void append_notes(const std::string& name, std::vector<std::string>& notes) const {
    if (bad_ > 0) notes.push_back(name + ": " + std::to_string(bad_) + " records could not be read");
    if (taken_ == 0 && without_text_ > 0)
      notes.push_back(name + ": none of " + std::to_string(without_text_) + " records has a text; name it with text=");
  }
  int64_t bad() const { return bad_; }
  int64_t without_text() const { return without_text_; }

 private:
  RecordFormat format_;
  int64_t taken_ = 0, bad_ = 0, without_text_ = 0;
};

}  // namespace streamvec
