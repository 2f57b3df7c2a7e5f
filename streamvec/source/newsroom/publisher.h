// How many articles are out. Private to the newsroom.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

namespace streamvec::newsroom {

// Thread-safe as far as its clock is. The count never falls. Memory: a few bytes for each of `ahead_max` articles.
class Publisher {
 public:
  struct Options {
    int64_t articles;   // 0: no end
    double rate;        // a second; 0: no limit
    int64_t published;  // at the beginning
    int64_t asked;      // at the beginning all articles below were asked for
    int64_t ahead_max;  // how far publishing may be ahead of the lowest article nobody asked for; 0: no limit
  };
  Publisher(Options options, std::function<double()> clock);

  int64_t published() const;
  void note_asked(int64_t number);  // somebody asked for this article
  int64_t asked() const;            // all articles below were asked for; only known with ahead_max

 private:
  const Options options_;
  const std::function<double()> clock_;
  const double start_s_;
  mutable std::mutex lock_;
  mutable int64_t published_;
  int64_t asked_;
  std::set<int64_t> asked_above_;  // further ones that were asked for
};

}  // namespace streamvec::newsroom
