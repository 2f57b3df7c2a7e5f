// The figures of training and serving in Prometheus' text format.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "streamvec/serve/http_server.h"
#include "streamvec/serve/served_model.h"

namespace streamvec {

// `progress` and `metrics` are the last events of those kinds, or null. `model` may be nullptr.
std::string metrics_text(const nlohmann::ordered_json& progress, const nlohmann::ordered_json& metrics,
                         const ServedModel* model, const HttpServer::Statistics& network, int64_t waiting);

}  // namespace streamvec
