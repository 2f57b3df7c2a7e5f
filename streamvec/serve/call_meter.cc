#include "streamvec/serve/call_meter.h"

#include <algorithm>
#include <sstream>

namespace streamvec {

void CallMeter::record(size_t call, int status, double seconds) {
  Row& row = rows_[call];
  const auto at = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  row.durations[static_cast<size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  row.microseconds.fetch_add(static_cast<int64_t>(seconds * 1e6), std::memory_order_relaxed);
  count(call, status);
}

void CallMeter::count(size_t call, int status) {
  rows_[call].statuses[static_cast<size_t>(std::clamp(status / 100, 0, 5))].fetch_add(1, std::memory_order_relaxed);
}

std::string CallMeter::text() const {
  std::ostringstream text;
  text << "# HELP streamvec_calls_total Calls answered, by the first digit of their status.\n"
          "# TYPE streamvec_calls_total counter\n";
  for (size_t i = 0; i < rows_.size(); ++i)
    for (size_t status = 2; status < 6; ++status)
      if (const int64_t count = rows_[i].statuses[status]; count > 0)
        text << "streamvec_calls_total{call=\"" << names_[i] << "\",status=\"" << status << "xx\"} " << count << "\n";
  text << "# HELP streamvec_call_seconds From the end of a request to its answer.\n"
          "# TYPE streamvec_call_seconds histogram\n";
  for (size_t i = 0; i < rows_.size(); ++i) {
    int64_t sum = 0;
    for (size_t at = 0; at <= kBounds.size(); ++at) {
      sum += rows_[i].durations[at];
      text << "streamvec_call_seconds_bucket{call=\"" << names_[i] << "\",le=\"";
      at < kBounds.size() ? text << kBounds[at] : text << "+Inf";
      text << "\"} " << sum << "\n";
    }
    text << "streamvec_call_seconds_sum{call=\"" << names_[i] << "\"} "
         << static_cast<double>(rows_[i].microseconds) / 1e6 << "\nstreamvec_call_seconds_count{call=\"" << names_[i]
         << "\"} " << sum << "\n";
  }
  return text.str();
}

}  // namespace streamvec
