// The calls of the service: one table of them, from which requests are routed and the OpenAPI document is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/serve/call_arguments.h"
#include "streamvec/serve/event_board.h"
#include "streamvec/serve/history_reader.h"
#include "streamvec/serve/http_message.h"
#include "streamvec/serve/model_board.h"
#include "streamvec/serve/queries.h"

namespace streamvec {

using Json = nlohmann::ordered_json;

// Who answers a call.
enum class Lane {
  kNetwork,  // the network's thread: what is ready already
  kCalls,    // the threads of calls, together with others where it is a search
  kSlow,     // a thread of its own for what may take seconds
};

// What calls are answered from. All is borrowed.
struct ApiParts {
  ModelBoard& models;
  EventBoard& events;
  HistoryReader& history;  // of the slow lane
  std::string directory;   // of the model
  std::string kind;        // "serve" or "train"
  std::string version;
  std::function<std::string()> figures;  // the text of /metrics
};

// Either the answer, or a search with what makes the answer of its result.
struct ApiAnswer {
  Json json;
  std::optional<PlannedSearch> search;
  std::function<Json(const ServedModel&, const std::vector<Neighbour>&)> finish;
};

struct ApiParameter {
  std::string_view name;
  std::string_view type;  // "string", "integer", "number[]", "word[]" (words with weights), "pair[]"
  std::string_view help;
  bool required = false;
  bool body_only = false;  // not in an address
};

struct ApiCall {
  std::string_view path;     // "/api/nearest"
  std::string_view methods;  // "GET", "GET POST"; what GET answers, HEAD does, too
  Role role;
  Lane lane;
  std::string_view summary;
  std::vector<ApiParameter> parameters;
  // What comes back, as JSON with types for values: "string", "integer", "number", "boolean", with '?' where it may be
  // null; "any". Nothing for what is no JSON.
  std::string_view answer;
  std::string_view content_type = "application/json";
  // Of lanes kCalls and kSlow; others are answered by the service itself. `model` may be nullptr where needs_model is
  // not set.
  Result<ApiAnswer> (*ask)(const ApiParts& parts, const ServedModel* model, const CallArguments& arguments) = nullptr;
  bool needs_model = true;
};

std::span<const ApiCall> api_calls();
// nullptr when there is none of that path.
const ApiCall* find_call(std::string_view path);
bool allows(const ApiCall& call, std::string_view method);

// The answer's own JSON with the words that are no UTF-8 repaired, ended by a line end.
std::string to_text(const Json& json);

// What /api/model and /api/progress answer.
Json model_card(const ApiParts& parts, const ServedModel& model);
Json progress_so_far(const ApiParts& parts, int64_t points);
inline constexpr char kNoSuchKind[] = "a kind of event is progress, metrics, alert, model, map or end";

// OpenAPI 3.0 of all calls.
Json openapi(const std::string& version);

}  // namespace streamvec
