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

// -1 is not known.
Json known(int64_t value) {
  return value >= 0 ? Json(value) : Json(nullptr);
}

Json json_of(const NodeProgress& node) {
  std::string role = node.worker ? "worker" : "";
  if (node.server) role += role.empty() ? "server" : "+server";
  return {{"node", node.node},
          {"role", role},
          {"leader", node.leader},
          {"state", node.state},
          {"silent_s", number(node.silent_s)},
          {"clock", known(node.clock)},
          {"staleness", known(node.staleness)},
          {"bytes_sent", known(node.bytes_sent)},
          {"bytes_received", known(node.bytes_received)}};
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

nlohmann::ordered_json to_json(const TrainProgress& progress, double time_s) {
  const bool stream = progress.documents >= 0;
  Json sources = Json::array();
  for (const SourceMetrics& source : progress.sources) sources.push_back(to_json(source));
  return {{"time", number(time_s)},
          {"tokens", progress.tokens},
          {"pairs", progress.pairs},
          {"documents", known(progress.documents)},
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
          {"replay", stream ? Json{{"chunks", known(progress.replay_chunks)}, {"ratio", number(progress.replay_ratio)}}
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

void add_last_report(const TrainProgress& last, TrainProgress& total) {
  total.loss = last.loss;
  total.prequential_loss = last.prequential_loss;
  total.bottleneck = last.bottleneck;
  total.replay_chunks = last.replay_chunks;
  total.sources = last.sources;
  for (SourceMetrics& source : total.sources) source.documents_per_s = source.bytes_per_s = 0;
  if (total.members.empty()) total.members = last.members;
}

}  // namespace streamvec
