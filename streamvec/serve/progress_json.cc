#include "streamvec/serve/progress_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json per_second(int64_t count, double seconds) {
  return seconds > 0 ? Json(static_cast<double>(count) / seconds) : Json(nullptr);
}

Json text(const std::string& value) {
  return value.empty() ? Json(nullptr) : Json(value);
}

Json json_of(const SourceMetrics& source) {
  return {{"name", without_credentials(source.name)},
          {"state", source.state},
          {"documents", source.documents},
          {"documents_per_s", number(source.documents_per_s)},
          {"bytes_per_s", number(source.bytes_per_s)},
          {"lag_s", number(source.lag_s)},
          {"errors", source.errors},
          {"last_error", text(source.last_error)},
          {"permission", text(source.permission)}};
}

Json json_of(const NodeProgress& node) {
  std::string role = node.worker ? "worker" : "";
  if (node.server) role += role.empty() ? "server" : "+server";
  return {{"node", node.node},
          {"role", role},
          {"leader", node.leader},
          {"state", node.state},
          {"silent_s", number(node.silent_s)},
          {"clock", node.clock >= 0 ? Json(node.clock) : Json(nullptr)}};
}

Json cluster_of(const TrainProgress& progress) {
  if (progress.members.empty()) return nullptr;
  Json nodes = Json::array();
  for (const NodeProgress& node : progress.members) nodes.push_back(json_of(node));
  return {{"pushes", progress.pushes},
          {"bytes_sent", progress.bytes_sent},
          {"bytes_received", progress.bytes_received},
          {"waiting_s", number(progress.waiting_s)},
          {"talking_s", number(progress.talking_s)},
          {"nodes", std::move(nodes)}};
}

// Three digits are more than a screen shows, and the text is sent to every reader.
double short_number(float value) {
  return std::round(double{value} * 1e4) / 1e4;
}

}  // namespace

std::string without_credentials(const std::string& name) {
  const size_t scheme = name.find("://");
  if (scheme == std::string::npos) return name;
  const size_t begin = scheme + 3, end = std::min(name.find_first_of("/?#", begin), name.size());
  const size_t at = name.rfind('@', end);
  return at == std::string::npos || at < begin || at >= end ? name : name.substr(0, begin) + name.substr(at + 1);
}

nlohmann::ordered_json to_json(const TrainProgress& progress, double time_s) {
  const bool stream = progress.documents >= 0;
  Json sources = Json::array();
  for (const SourceMetrics& source : progress.sources) sources.push_back(json_of(source));
  return {
      {"time", number(time_s)},
      {"tokens", progress.tokens},
      {"pairs", progress.pairs},
      {"documents", stream ? Json(progress.documents) : Json(nullptr)},
      {"seconds", number(progress.seconds)},
      {"tokens_per_s", per_second(progress.tokens, progress.seconds)},
      {"pairs_per_s", per_second(progress.pairs, progress.seconds)},
      {"loss", number(progress.loss)},
      {"prequential_loss", stream ? number(progress.prequential_loss) : Json(nullptr)},
      {"lr", number(progress.lr)},
      {"fraction", progress.fraction >= 0 ? Json(progress.fraction) : Json(nullptr)},
      {"epoch", progress.epoch},
      {"words", progress.vocab},
      {"dim", progress.dim},
      {"model", progress.model},
      {"kernel", progress.kernel},
      {"bottleneck", text(progress.bottleneck)},
      {"replay", stream ? Json{{"chunks", progress.replay_chunks >= 0 ? Json(progress.replay_chunks) : Json(nullptr)},
                               {"ratio", number(progress.replay_ratio)}}
                        : Json(nullptr)},
      {"sources", std::move(sources)},
      {"cluster", cluster_of(progress)}};
}

nlohmann::ordered_json to_json(const MapFrame& frame) {
  Json words = Json::array(), counts = Json::array(), x = Json::array(), y = Json::array(), group = Json::array();
  for (const MapPoint& point : frame.points) {
    words.push_back(point.word);
    counts.push_back(point.count);
    x.push_back(short_number(point.x));
    y.push_back(short_number(point.y));
    group.push_back(point.group);
  }
  return {{"model", frame.model_number}, {"step", frame.step}, {"words", std::move(words)},
          {"counts", std::move(counts)}, {"x", std::move(x)},  {"y", std::move(y)},
          {"group", std::move(group)}};
}

}  // namespace streamvec
