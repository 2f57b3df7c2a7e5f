// How many calls of each kind there were, how they ended and how long they took. Thread-safe, without locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace streamvec {

class CallMeter {
 public:
  // Upper bounds of the classes of duration, seconds.
  static constexpr std::array<double, 12> kBounds = {0.0005, 0.001, 0.002, 0.003, 0.005, 0.01,
                                                     0.02,   0.05,  0.1,   0.5,   1,     5};
  explicit CallMeter(std::vector<std::string> names) : names_(std::move(names)), rows_(names_.size()) {}

  // `call` is an index of the names.
  void record(size_t call, int status, double seconds);
  // One that was refused: it says nothing of how long calls take.
  void count(size_t call, int status);
  // As Prometheus reads it.
  std::string text() const;

 private:
  struct Row {
    std::array<std::atomic<int64_t>, kBounds.size() + 1> durations{};
    std::atomic<int64_t> microseconds{0};
    std::array<std::atomic<int64_t>, 6> statuses{};  // by their first digit
  };
  const std::vector<std::string> names_;
  std::vector<Row> rows_;
};

}  // namespace streamvec
