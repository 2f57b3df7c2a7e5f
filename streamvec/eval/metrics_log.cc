#include "streamvec/eval/metrics_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "streamvec/core/address.h"
#include "streamvec/core/json.h"
#include "streamvec/eval/append_file.h"

namespace streamvec {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json json_of(const PipFigures& figures) {
  return {{"relative", number(figures.relative)},
          {"cka", number(figures.cka)},
          {"neighbour_overlap", number(figures.neighbour_overlap)}};
}

Json json_of(const std::optional<PipReport>& report) {
  if (!report) return nullptr;
  Json json = json_of(report->model);
  json["references"] = Json::object();
  for (const auto& [name, figures] : report->references) json["references"][name] = json_of(figures);
  return json;
}

Json json_of(const std::vector<NamedFigure>& figures) {
  Json json = Json::object();
  for (const NamedFigure& figure : figures) json[figure.name] = number(figure.value);
  return json;
}

Json text(const std::string& value) {
  return value.empty() ? Json(nullptr) : Json(without_credentials(value));
}

void add_all(std::vector<Scalar>& scalars, const std::string& group, const std::vector<NamedFigure>& figures) {
  for (const NamedFigure& figure : figures) scalars.push_back({group + "/" + figure.name, figure.value});
}

void add_pip(std::vector<Scalar>& scalars, const std::string& group, const PipFigures& figures) {
  scalars.push_back({group + "/relative", figures.relative});
  scalars.push_back({group + "/cka", figures.cka});
  scalars.push_back({group + "/neighbour_overlap", figures.neighbour_overlap});
}

}  // namespace

nlohmann::ordered_json to_json(const SourceMetrics& source) {
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

nlohmann::ordered_json to_json(const StreamMetrics& metrics) {
  Json sources = Json::array();
  for (const SourceMetrics& source : metrics.sources) sources.push_back(to_json(source));
  return {{"time", number(metrics.time_s)},
          {"step", metrics.step},
          {"tokens", metrics.tokens},
          {"tokens_per_s", number(metrics.tokens_per_s)},
          {"prequential_loss", number(metrics.prequential_loss)},
          {"loss", number(metrics.loss)},
          {"pip", json_of(metrics.pip)},
          {"overlap_with_last", number(metrics.overlap_with_last)},
          {"similarity", json_of(metrics.similarity)},
          {"analogy", json_of(metrics.analogy)},
          {"vocab", {{"words", metrics.vocab}, {"admitted", metrics.admitted}, {"evicted", metrics.evicted}}},
          {"replay", {{"chunks", metrics.replay_chunks}, {"ratio", number(metrics.replay_ratio)}}},
          {"dropped",
           {{"documents", metrics.documents_dropped},
            {"chunks", metrics.chunks_dropped},
            {"updates", metrics.updates_refused}}},
          {"sources", std::move(sources)},
          {"bottleneck", text(metrics.bottleneck)},
          {"stages", json_of(metrics.stages)},
          {"drift", {{"alerts", metrics.drift_alerts}, {"words", metrics.drift_words}}},
          {"rss_mb", number(static_cast<double>(metrics.rss_bytes) / 1e6)}};
}

std::vector<Scalar> to_scalars(const StreamMetrics& metrics) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  std::vector<Scalar> scalars = {{"speed/tokens", real(metrics.tokens)},
                                 {"speed/tokens_per_s", metrics.tokens_per_s},
                                 {"loss/prequential", metrics.prequential_loss},
                                 {"loss/training", metrics.loss},
                                 {"quality/overlap_with_last", metrics.overlap_with_last},
                                 {"vocab/words", real(metrics.vocab)},
                                 {"vocab/admitted", real(metrics.admitted)},
                                 {"vocab/evicted", real(metrics.evicted)},
                                 {"replay/chunks", real(metrics.replay_chunks)},
                                 {"replay/ratio", metrics.replay_ratio},
                                 {"dropped/documents", real(metrics.documents_dropped)},
                                 {"dropped/chunks", real(metrics.chunks_dropped)},
                                 {"dropped/updates", real(metrics.updates_refused)},
                                 {"drift/alerts", real(metrics.drift_alerts)},
                                 {"machine/rss_mb", real(metrics.rss_bytes) / 1e6}};
  if (metrics.pip) {
    add_pip(scalars, "pip", metrics.pip->model);
    for (const auto& [name, figures] : metrics.pip->references) add_pip(scalars, "pip_" + name, figures);
  }
  add_all(scalars, "similarity", metrics.similarity);
  add_all(scalars, "analogy", metrics.analogy);
  add_all(scalars, "busy", metrics.stages);
  for (const SourceMetrics& source : metrics.sources) {
    const std::string name = without_credentials(source.name);
    scalars.push_back({"source_documents_per_s/" + name, source.documents_per_s});
    scalars.push_back({"source_lag_s/" + name, source.lag_s});
    scalars.push_back({"source_errors/" + name, real(source.errors)});
  }
  return scalars;
}

Result<MetricsLog> MetricsLog::open(const std::string& dir, Options options) {
  MetricsLog log(dir + "/metrics.jsonl", options);
  STREAMVEC_RETURN_IF_ERROR(log.open_lines());
  if (options.tensorboard) {
    STREAMVEC_ASSIGN_OR_RETURN(log.events_, EventFile::open(dir + "/tensorboard"));
  }
  return log;
}

Status MetricsLog::open_lines() {
  STREAMVEC_ASSIGN_OR_RETURN(file_, open_for_append(path_));
  struct stat info;
  if (::fstat(file_.get(), &info) != 0) return file_error(errno, "look at", path_);
  size_ = info.st_size;
  char last = '\n';
  if (size_ > 0 && ::pread(file_.get(), &last, 1, size_ - 1) != 1) return file_error(errno, "read", path_);
  return last == '\n' ? Status() : append_all(file_, "\n", path_);
}

Status MetricsLog::write_line(const std::string& line) {
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.bytes_max) {
    STREAMVEC_RETURN_IF_ERROR(rename_path(path_, path_ + ".1"));
    STREAMVEC_RETURN_IF_ERROR(open_lines());
  }
  size_ += static_cast<int64_t>(line.size());
  return append_all(file_, line, path_);
}

Status MetricsLog::write(const StreamMetrics& metrics) {
  // Names of sources and words are bytes of the stream: what is no UTF-8 becomes U+FFFD.
  const std::string line = json_text(to_json(metrics)) + "\n";
  const Status lines = write_line(line);
  const Status events = events_ ? events_->write(metrics.time_s, metrics.step, to_scalars(metrics)) : Status();
  return lines.ok() ? events : lines;
}

}  // namespace streamvec
