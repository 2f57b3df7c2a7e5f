#include "streamvec/source/live/live_name.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "streamvec/source/record.h"

namespace streamvec {
namespace {

constexpr std::string_view kCommonKeys[] = {"idle", "lookback", "private", "ca", "form", "retry"};
constexpr std::string_view kSend = "send-";

// "/path" and "query" of a name, as written and without a fragment.
std::pair<std::string, std::string> written_target(std::string_view name) {
  name = name.substr(0, name.find('#'));
  const size_t question = std::min(name.find('?'), name.size());
  const std::string_view query = name.substr(std::min(question + 1, name.size()));
  name = name.substr(0, question);
  const size_t authority = name.find("://");
  const size_t slash = authority == std::string_view::npos ? authority : name.find('/', authority + 3);
  return {slash == std::string_view::npos ? "/" : std::string(name.substr(slash)), std::string(query)};
}

// The part of a query that the server shall have.
std::string servers_query(std::string_view query, const std::set<std::string_view>& ours) {
  std::string kept;
  while (!query.empty()) {
    std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    if (part.empty() || ours.count(part.substr(0, part.find('='))) > 0) continue;
    if (part.starts_with(kSend)) part.remove_prefix(kSend.size());
    kept += (kept.empty() ? "" : "&") + std::string(part);
  }
  return kept;
}

bool printable(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char byte) { return byte > 0x20 && byte != 0x7F; });
}

}  // namespace

Result<LiveName> LiveName::parse(const std::string& name, std::initializer_list<std::string_view> others) {
  LiveName parsed;
  STREAMVEC_ASSIGN_OR_RETURN(parsed.location, Location::parse(name));
  Location& location = parsed.location;
  if (!printable(name)) return error(Code::kInvalidArgument, location.name, ": blanks and controls are written as %20");
  if (location.host.empty()) return error(Code::kInvalidArgument, location.name, ": there is no host after ://");
  std::set<std::string_view> ours(std::begin(kCommonKeys), std::end(kCommonKeys));
  ours.insert(others.begin(), others.end());
  ours.insert(RecordFormat::keys().begin(), RecordFormat::keys().end());
  const auto [path, query] = written_target(name);
  const std::string kept = servers_query(query, ours);
  parsed.target = path + (kept.empty() ? "" : "?" + kept);
  std::erase_if(location.query, [&](const auto& setting) { return ours.count(setting.first) == 0; });
  const bool tls = location.scheme == "wss" || location.scheme.ends_with("https");
  parsed.peer = {.host = location.host, .port = location.port != 0 ? location.port : tls ? 443 : 80, .tls = tls};
  return parsed;
}

Status LiveName::take_settings() {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t idle_s, location.integer("idle", 60, 1, 86'400));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t lookback, location.integer("lookback", 0, 0, 10LL * 365 * 86'400));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t retry_ms, location.integer("retry", 500, 10, 60'000));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t allowed, location.integer("private", 0, 0, 1));
  idle = std::chrono::seconds(idle_s);
  retry = std::chrono::milliseconds(retry_ms);
  lookback_s = static_cast<double>(lookback);
  peer.private_ok = allowed == 1;
  peer.ca = location.text("ca");
  return {};
}

Status refusal(long http_status, std::string_view redirect) {
  const std::string answer = "the server answers " + std::to_string(http_status);
  if (http_status == 204) return error(Code::kOutOfRange, answer, ": the stream is over");
  if (http_status >= 300 && http_status < 400)
    return error(Code::kFailedPrecondition, answer, ", a redirect to ", redirect.empty() ? "nowhere" : redirect,
                 ", which is not followed; name that instead");
  if (http_status == 401) return error(Code::kUnauthenticated, answer, "; put USER:PASSWORD@ before the host");
  if (http_status == 403) return error(Code::kPermissionDenied, answer, ": reading it is not allowed");
  if (http_status == 404 || http_status == 410) return error(Code::kNotFound, answer, ": there is no such stream");
  if (http_status == 408 || http_status == 425 || http_status == 429 || http_status >= 500)
    return error(Code::kUnavailable, answer);
  return error(Code::kInvalidArgument, answer, "; it is no stream of this kind");
}

}  // namespace streamvec
