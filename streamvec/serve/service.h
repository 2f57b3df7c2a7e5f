// The query service: a model, its calls over HTTP, its events, its figures and the dashboard's files. `serve` starts
// one over a directory, `train --listen` one over the model that is being trained.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/eval/metrics_log.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/serve/access.h"
#include "streamvec/serve/http_server.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

class Service {
 public:
  struct Options {
    std::string listen = "127.0.0.1:8080";
    std::string listen_grpc;  // "": no gRPC
    // Of the model: its history, and what its metrics.jsonl tells of before. Of `serve`, lines that come are shown.
    std::string directory;
    std::string kind = "serve";  // or "train"
    std::string version;
    HttpLimits limits;
    TlsFiles tls;
    Access::Options access;
    int64_t exact_words_max = 1'000'000;  // models with more are searched by an index
    int32_t threads = 0;                  // that answer calls; 0: one for two cores, at most 4
  };

  // Listens at once; calls are answered with 503 until a model is there. kInvalidArgument: an address that others can
  // reach without a token or client certificates, or bad files; kUnavailable: the address cannot be had.
  static Result<std::unique_ptr<Service>> start(Options options);
  virtual ~Service() = default;  // stops at once

  // Where it is: "http://127.0.0.1:8080".
  virtual std::string url() const = 0;
  virtual std::string grpc_address() const = 0;  // "127.0.0.1:9090"; "" without

  // All return at once. Thread-safe.
  virtual void show(std::shared_ptr<const Snapshot> snapshot) = 0;
  virtual void show(const TrainProgress& progress) = 0;
  virtual void show(const StreamMetrics& metrics) = 0;
  virtual void show_trouble(const std::string& text) = 0;  // with the newest model; "" once all is well
  // What came of training, once it is over: its last progress, with nothing moving any more.
  virtual void show_total(const TrainProgress& progress) = 0;
  virtual void show_end(const std::string& why) = 0;
  // Waits until what was shown is served.
  virtual void await_served() = 0;
  // Takes no more connections, lets answers under way leave for a moment, then closes all.
  virtual void stop() = 0;
};

}  // namespace streamvec
