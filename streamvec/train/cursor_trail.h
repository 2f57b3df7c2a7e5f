// Remembers where pieces of a text begin, so that earlier ones are found again without reading all that is before them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace streamvec {

// From a piece on, of a text of any length, at most kKept cursors: of every piece at first, then of every other, every
// fourth, ...
class CursorTrail {
 public:
  static constexpr size_t kKept = 65'536;

  explicit CursorTrail(int64_t first = 0, std::string cursor = "") : first_(first), cursors_{std::move(cursor)} {}

  int64_t first() const { return first_; }
  // `cursor` stands before piece `index`; what comes out of turn is known or passed over.
  void note(int64_t index, const std::string& cursor) {
    if (index != first_ + static_cast<int64_t>(cursors_.size()) * every_) return;
    cursors_.push_back(cursor);
    if (cursors_.size() < kKept) return;
    for (size_t i = 1; 2 * i < cursors_.size(); ++i) cursors_[i] = std::move(cursors_[2 * i]);
    cursors_.resize((cursors_.size() + 1) / 2);
    every_ *= 2;
  }
  // The last piece up to `index` that is known, and the cursor before it.
  std::pair<int64_t, std::string> before(int64_t index) const {
    if (index < first_) return {0, ""};
    const int64_t at = std::min((index - first_) / every_, static_cast<int64_t>(cursors_.size()) - 1);
    return {first_ + at * every_, cursors_[static_cast<size_t>(at)]};
  }

 private:
  int64_t first_;
  std::vector<std::string> cursors_;  // that of piece first_ + i * every_
  int64_t every_ = 1;
};

}  // namespace streamvec
