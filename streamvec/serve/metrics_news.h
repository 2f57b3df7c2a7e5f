// What the figures of a stream tell those who listen: each line of metrics as an event, and each word that changed its
// meaning as an alert, once.
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "streamvec/serve/event_board.h"
#include "streamvec/serve/metrics_tail.h"

namespace streamvec {

// recall() and follow() by one thread at a time, tell() by any.
class MetricsNews {
 public:
  using Json = EventBoard::Json;
  // `serves`: the model is not trained here, so that the last line that was written is how things stand. What was
  // before a training has begun is part of its history alone.
  MetricsNews(const std::string& directory, bool serves, EventBoard& events)
      : tail_(directory), serves_(serves), events_(events) {}

  void recall();  // what DIR/metrics.jsonl has by now
  void follow();  // what has come there since
  void tell(Json metrics) { put(std::move(metrics), false); }

 private:
  void take(const std::string& line, bool is_past, bool again);
  void put(Json metrics, bool is_past);
  void put(const std::string& kind, const Json& data, bool is_past);

  MetricsTail tail_;
  const bool serves_;
  EventBoard& events_;
  double newest_s_ = 0;  // of the lines taken
  std::mutex mutex_;
  std::set<std::string> alerted_;
};

}  // namespace streamvec
