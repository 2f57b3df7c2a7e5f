// What a stream looks like while it learns, for people and programs that watch: JSON lines and TensorBoard.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/eval/pip.h"
#include "streamvec/eval/tensorboard.h"

namespace streamvec {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct NamedFigure {
  std::string name;
  double value = 0;
};

// Names and messages may hold credentials; what is written of them does not.
struct SourceMetrics {
  std::string name;
  double documents_per_s = 0, bytes_per_s = 0;
  double lag_s = kNotMeasured;  // age of the newest document read; NaN when documents have no dates
  int64_t documents = 0, errors = 0;
  std::string state;            // "reading", "waiting", "failing", ...
  std::string last_error = {};  // "" none
  std::string permission = {};  // what its other side allows, in words: robots.txt's verdict; "" nothing is asked
};

// One look at the stream. What is not known is NaN or nullopt, and null in JSON.
struct StreamMetrics {
  double time_s = 0;  // unix seconds of the clock
  int64_t step = 0, tokens = 0;
  double tokens_per_s = kNotMeasured;
  double prequential_loss = kNotMeasured;        // of chunks before training on them, lately
  double loss = kNotMeasured;                    // of training, lately
  std::optional<PipReport> pip;                  // on the probe vocabulary, with its references
  double overlap_with_last = kNotMeasured;       // share of 10 nearest neighbours kept since the last snapshot
  std::vector<NamedFigure> similarity, analogy;  // by set: Spearman, accuracy
  int64_t vocab = 0, admitted = 0, evicted = 0;  // words now; since the stream began
  int64_t replay_chunks = 0;
  double replay_ratio = kNotMeasured;  // samples per insert, lately
  int64_t documents_dropped = 0, chunks_dropped = 0, updates_refused = 0;
  std::vector<SourceMetrics> sources;
  std::string bottleneck;           // the stage that the others wait for
  std::vector<NamedFigure> stages;  // by stage: share of time it was busy
  int64_t drift_alerts = 0;
  std::vector<std::string> drift_words;  // those alerted, greatest score first
  int64_t rss_bytes = 0;
};

// One object; names as above, those of a group together:
// {"time","step",...,"pip":{"relative","cka","neighbour_overlap", "references":{name:{the same
// three}}},"vocab":{"words","admitted","evicted"},"replay":{...},"dropped":{...},
// "sources":[...],"drift":{"alerts","words"},...}. docs/FORMATS.md has all.
nlohmann::ordered_json to_json(const StreamMetrics& metrics);
// As in "sources".
nlohmann::ordered_json to_json(const SourceMetrics& source);
// The numbers of it, for TensorBoard. What is not finite is left out there.
std::vector<Scalar> to_scalars(const StreamMetrics& metrics);

// Appends to DIR/metrics.jsonl, a line each, and to event files in DIR/tensorboard. Each line reaches the file whole in
// one write; a line that a crash cut short is ended when the file is opened again. Past bytes_max the file becomes
// DIR/metrics.jsonl.1, which replaces the one before. Nothing is synced: a crash of the machine may lose the last
// lines. Not thread-safe.
class MetricsLog {
 public:
  struct Options {
    int64_t bytes_max = int64_t{64} << 20;
    bool tensorboard = true;
  };
  // REQUIRES: the directory is there.
  static Result<MetricsLog> open(const std::string& dir, Options options);
  static Result<MetricsLog> open(const std::string& dir) { return open(dir, Options()); }

  // Both outputs are tried; the first error is returned.
  Status write(const StreamMetrics& metrics);

 private:
  MetricsLog(std::string path, Options options) : path_(std::move(path)), options_(options) {}
  Status open_lines();
  Status write_line(const std::string& line);

  std::string path_;
  Options options_;
  FileHandle file_;
  int64_t size_ = 0;
  std::optional<EventFile> events_;
};

}  // namespace streamvec
