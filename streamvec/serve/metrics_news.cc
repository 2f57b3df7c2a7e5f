#include "streamvec/serve/metrics_news.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/address.h"
#include "streamvec/core/json.h"

namespace streamvec {

void MetricsNews::recall() {
  tail_.read([this](const std::string& line, bool again) { take(line, true, again); });
}

void MetricsNews::follow() {
  tail_.read([this](const std::string& line, bool again) { take(line, false, again); });
}

// `again`: unless it is newer than all before, it is one of them.
void MetricsNews::take(const std::string& line, bool is_past, bool again) {
  Json metrics = parse_ordered_json(line);
  if (!metrics.is_object()) return;
  const Json time = metrics.value("time", Json());
  const double time_s = time.is_number() ? time.get<double>() : 0;
  if (again && time_s <= newest_s_) return;
  newest_s_ = std::max(newest_s_, time_s);
  put(std::move(metrics), is_past);
}

void MetricsNews::put(Json metrics, bool is_past) {
  if (metrics.contains("sources") && metrics["sources"].is_array())
    for (Json& source : metrics["sources"])
      for (const char* key : {"name", "last_error"})  // a file that an older version wrote may hold some
        if (source.is_object() && source.contains(key) && source[key].is_string())
          source[key] = without_credentials(source[key].get<std::string>());
  put("metrics", metrics, is_past);
  const Json::json_pointer words("/drift/words");
  Json fresh = Json::array();
  if (metrics.contains(words) && metrics[words].is_array()) {
    const std::lock_guard lock(mutex_);
    for (const Json& word : metrics[words])
      if (word.is_string() && alerted_.insert(word.get<std::string>()).second) fresh.push_back(word);
  }
  if (!fresh.empty())
    put("alert",
        {{"time", metrics.value("time", Json(nullptr))},
         {"step", metrics.value("step", Json(nullptr))},
         {"words", std::move(fresh)}},
        is_past);
}

void MetricsNews::put(const std::string& kind, const Json& data, bool is_past) {
  is_past ? events_.recall(kind, data, serves_) : events_.tell(kind, data, true);
}

}  // namespace streamvec
