#include "streamvec/serve/metrics_text.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "streamvec/core/json.h"
#include "streamvec/core/memory.h"

namespace streamvec {
namespace {

using Json = nlohmann::ordered_json;

// A value between the quotes of a label. Bytes that are no UTF-8 become U+FFFD, as they do in JSON.
std::string label_text(const std::string& value) {
  std::string text;
  for (const char c : parse_ordered_json(json_text(Json(value))).get<std::string>()) {
    if (c == '\\' || c == '"') text += '\\';
    c == '\n' ? text += "\\n" : text += c;
  }
  return text;
}

class Lines {
 public:
  void head(const char* name, const char* kind, const char* help) {
    text_ << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << kind << "\n";
  }
  void value(const std::string& name, const Json& value) {
    if (value.is_number()) text_ << name << " " << json_text(value) << "\n";
  }
  // A figure that is left out when it is not known.
  void one(const char* name, const char* kind, const char* help, const Json& value_) {
    if (!value_.is_number()) return;
    head(name, kind, help);
    value(name, value_);
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

// Of a path such as /vocab/words; null when it is not there.
Json at(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  return json.is_object() && json.contains(pointer) ? json[pointer] : Json(nullptr);
}

void add_training(Lines& lines, const Json& progress, const Json& metrics) {
  const Json& newest = progress.is_object() ? progress : metrics;
  lines.one("streamvec_tokens_total", "counter", "Words read.", at(newest, "/tokens"));
  lines.one("streamvec_pairs_total", "counter", "Pairs trained on.", at(progress, "/pairs"));
  lines.one("streamvec_tokens_per_second", "gauge", "Words read a second, over the run.", at(newest, "/tokens_per_s"));
  lines.one("streamvec_loss", "gauge", "Mean loss a pair, lately.", at(newest, "/loss"));
  lines.one("streamvec_prequential_loss", "gauge", "The same on text before it is trained on.",
            at(newest, "/prequential_loss"));
  lines.one("streamvec_progress_ratio", "gauge", "Share of the run that is done.", at(progress, "/fraction"));
  lines.one("streamvec_replay_ratio", "gauge", "Samples per insert of replay, lately.", at(newest, "/replay/ratio"));
  lines.one("streamvec_replay_chunks", "gauge", "Parts of text that replay holds.", at(newest, "/replay/chunks"));
  lines.one("streamvec_pip_relative", "gauge", "Distance to the factorised SPPMI (0 is the oracle).",
            at(metrics, "/pip/relative"));
  lines.one("streamvec_pip_cka", "gauge", "CKA against the oracle.", at(metrics, "/pip/cka"));
  lines.one("streamvec_words_admitted_total", "counter", "Words that got a slot.", at(metrics, "/vocab/admitted"));
  lines.one("streamvec_words_evicted_total", "counter", "Words that lost it.", at(metrics, "/vocab/evicted"));
  lines.one("streamvec_drift_alerts", "gauge", "Words whose meaning moved beyond chance.",
            at(metrics, "/drift/alerts"));
  lines.one("streamvec_updates_refused_total", "counter", "Updates that were not finite.",
            at(metrics, "/dropped/updates"));
  lines.one("streamvec_cluster_bytes_sent_total", "counter", "To other nodes.", at(progress, "/cluster/bytes_sent"));
  lines.one("streamvec_cluster_bytes_received_total", "counter", "From other nodes.",
            at(progress, "/cluster/bytes_received"));
}

void add_similarity(Lines& lines, const Json& metrics) {
  const Json similarity = at(metrics, "/similarity");
  if (!similarity.is_object() || similarity.empty()) return;
  lines.head("streamvec_similarity", "gauge", "Spearman's correlation on a similarity set.");
  for (const auto& [name, value] : similarity.items())
    lines.value("streamvec_similarity{set=\"" + label_text(name) + "\"}", value);
}

// Names of sources as labels, by number, "" of those without; one that comes again is told apart, since a series must
// not come twice.
std::vector<std::string> source_labels(const Json& sources) {
  std::vector<std::string> labels;
  std::set<std::string> used;
  for (const Json& source : sources) {
    if (!source.contains("name") || !source["name"].is_string()) {
      labels.emplace_back();
      continue;
    }
    const std::string name = source["name"].get<std::string>();
    std::string label = name;
    for (int time = 2; !used.insert(label).second; ++time) label = name + " (" + std::to_string(time) + ")";
    labels.push_back("{source=\"" + label_text(label) + "\"}");
  }
  return labels;
}

void add_sources(Lines& lines, const Json& sources) {
  if (!sources.is_array() || sources.empty()) return;
  constexpr const char* kFigures[][4] = {
      {"documents", "streamvec_source_documents_total", "counter", "Documents read."},
      {"errors", "streamvec_source_errors_total", "counter", "Errors met."},
      {"lag_s", "streamvec_source_lag_seconds", "gauge", "Age of the newest document when it was read."},
      {"documents_per_s", "streamvec_source_documents_per_second", "gauge", "Documents a second, lately."}};
  const std::vector<std::string> labels = source_labels(sources);
  for (const auto& [key, name, kind, help] : kFigures) {
    lines.head(name, kind, help);
    for (size_t i = 0; i < sources.size(); ++i)
      if (!labels[i].empty() && sources[i].contains(key)) lines.value(name + labels[i], sources[i][key]);
  }
}

}  // namespace

std::string metrics_text(const Json& progress, const Json& metrics, const ServedModel* model,
                         const HttpServer::Statistics& network, int64_t waiting) {
  Lines lines;
  if (model != nullptr) {
    lines.one("streamvec_model_words", "gauge", "Words of the served model.", model->vocabulary().size());
    lines.one("streamvec_model_dim", "gauge", "Values of its vectors.", model->dim());
    lines.one("streamvec_model_step", "gauge", "Training steps behind it.", model->snapshot().step);
    lines.one("streamvec_model_number", "counter", "Models served since the start.", model->number());
    lines.one("streamvec_model_served_timestamp_seconds", "gauge", "When it was made ready.", model->time_s());
  }
  add_training(lines, progress, metrics);
  add_similarity(lines, metrics);
  add_sources(lines, at(progress.is_object() ? progress : metrics, "/sources"));
  lines.one("streamvec_http_connections", "gauge", "Open connections.", network.connections);
  lines.one("streamvec_http_event_readers", "gauge", "Readers of events.", network.event_readers);
  lines.one("streamvec_http_accepted_total", "counter", "Connections taken.", network.accepted);
  lines.one("streamvec_http_refused_total", "counter", "Connections turned away.", network.refused_connections);
  lines.one("streamvec_http_too_slow_total", "counter", "Connections closed for being slow.", network.too_slow);
  lines.one("streamvec_http_requests_total", "counter", "Requests.", network.requests);
  lines.one("streamvec_http_sent_bytes_total", "counter", "Bytes sent.", network.bytes_sent);
  lines.one("streamvec_calls_waiting", "gauge", "Calls that wait for a thread.", waiting);
  lines.one("process_resident_memory_bytes", "gauge", "Memory of the process.", resident_memory());
  return lines.text();
}

}  // namespace streamvec
