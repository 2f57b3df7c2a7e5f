#include "streamvec/cluster/etcd_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;

constexpr size_t kAnswerMax = size_t{8} << 20;
constexpr std::string_view kNoSpace = "mvcc: database space exceeded";  // as etcd says it
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Keys and values travel in base64.
std::string encode64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += k <= std::min<size_t>(bytes.size() - i, 3) ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// What is no base64 ends the bytes.
std::string decode64(std::string_view text) {
  std::string bytes;
  uint32_t group = 0, bits = 0;
  for (const char digit : text) {
    const size_t value = kDigits.find(digit);
    if (value == kDigits.npos) break;
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  return bytes;
}

// etcd writes 64-bit numbers as text.
int64_t number_of(const Json& from, const char* name) {
  const auto found = from.find(name);
  if (found == from.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  return found->is_string() ? std::strtoll(found->get_ref<const std::string&>().c_str(), nullptr, 10) : 0;
}

std::string text_of(const Json& from, const char* name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? decode64(found->get_ref<const std::string&>()) : "";
}

size_t take_bytes(char* bytes, size_t, size_t count, void* to) {
  auto& answer = *static_cast<std::string*>(to);
  if (answer.size() + count > kAnswerMax) return 0;
  answer.append(bytes, count);
  return count;
}

long milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.when() - Deadline::Clock::now());
  return static_cast<long>(std::clamp<int64_t>(left.count(), 1, 600'000));
}

}  // namespace

Result<std::string> EtcdClient::call(const std::string& path, const std::string& body, Deadline deadline) const {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return error(Code::kResourceExhausted, "no memory for a connection to etcd");
  std::string answer;
  const std::string url = url_ + path;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // it is a neighbour
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, milliseconds_until(deadline));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  const CURLcode done = curl_easy_perform(curl.get());
  if (done == CURLE_OPERATION_TIMEDOUT) return error(Code::kDeadlineExceeded, "etcd at ", url_, " does not answer");
  if (done != CURLE_OK)
    return error(Code::kUnavailable, "etcd at ", url_, ": ", curl_easy_strerror(done), "; is it running there?");
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200 && answer.find(kNoSpace) != answer.npos)
    return error(Code::kUnavailable, "etcd at ", url_, " has no space left and writes nothing; compact and defragment ",
                 "it (or give it a larger --quota-backend-bytes), then disarm its alarm with etcdctl alarm disarm");
  if (status != 200)
    return error(Code::kUnavailable, "etcd at ", url_, " answers ", status, ": ", answer.substr(0, 200));
  return answer;
}

Result<int64_t> EtcdClient::grant_lease(double seconds, Deadline deadline) const {
  const Json asked = {{"TTL", std::max<int64_t>(1, std::lround(std::ceil(seconds)))}};
  STREAMVEC_ASSIGN_OR_RETURN(const std::string answer, call("/v3/lease/grant", json_text(asked), deadline));
  const int64_t lease = number_of(parse_json(answer), "ID");
  if (lease == 0) return error(Code::kUnavailable, "etcd at ", url_, " gives no lease: ", answer.substr(0, 200));
  return lease;
}

Status EtcdClient::keep_alive(int64_t lease, Deadline deadline) const {
  const Json asked = {{"ID", std::to_string(lease)}};
  STREAMVEC_ASSIGN_OR_RETURN(const std::string answer, call("/v3/lease/keepalive", json_text(asked), deadline));
  const Json told = parse_json(answer.substr(0, answer.find('\n')));
  const auto result = told.find("result");
  if (result == told.end() || number_of(*result, "TTL") <= 0)
    return error(Code::kNotFound, "the lease has ended: this node was not heard for longer than it");
  return {};
}

Status EtcdClient::revoke(int64_t lease, Deadline deadline) const {
  return call("/v3/lease/revoke", json_text(Json({{"ID", std::to_string(lease)}})), deadline).status();
}

namespace {

Json put_request(const std::string& key, const std::string& value, int64_t lease) {
  return {{"key", encode64(key)}, {"value", encode64(value)}, {"lease", std::to_string(lease)}};
}

}  // namespace

Status EtcdClient::put(const std::string& key, const std::string& value, int64_t lease, Deadline deadline) const {
  return call("/v3/kv/put", json_text(put_request(key, value, lease)), deadline).status();
}

Result<int64_t> EtcdClient::write_if(const std::vector<EtcdKey>& unchanged, const std::vector<Write>& writes,
                                     Deadline deadline) const {
  Json asked = {{"compare", Json::array()}, {"success", Json::array()}};
  for (const EtcdKey& key : unchanged)
    asked["compare"].push_back({{"key", encode64(key.key)},
                                {"target", "MOD"},
                                {"result", "EQUAL"},
                                {"mod_revision", std::to_string(key.modified)}});
  for (const Write& write : writes)
    asked["success"].push_back(write.value ? Json{{"request_put", put_request(write.key, *write.value, write.lease)}}
                                           : Json{{"request_delete_range", {{"key", encode64(write.key)}}}});
  STREAMVEC_ASSIGN_OR_RETURN(const std::string answer, call("/v3/kv/txn", json_text(asked), deadline));
  const Json told = parse_json(answer);
  if (!told.is_object() || !told.contains("header"))
    return error(Code::kUnavailable, "etcd at ", url_, " answers ", answer.substr(0, 200));
  if (told.find("succeeded") == told.end() || told["succeeded"] != true)
    return error(Code::kAborted, unchanged.front().key, " was written by somebody else");
  return number_of(told["header"], "revision");
}

Result<std::vector<EtcdKey>> EtcdClient::list(const std::string& prefix, Deadline deadline) const {
  std::string end = prefix;
  ++end.back();  // the first key past all that begin so; a prefix ends with a letter or a slash
  const Json asked = {{"key", encode64(prefix)}, {"range_end", encode64(end)}, {"sort_target", "CREATE"}};
  STREAMVEC_ASSIGN_OR_RETURN(const std::string answer, call("/v3/kv/range", json_text(asked), deadline));
  const Json told = parse_json(answer);
  if (!told.is_object()) return error(Code::kUnavailable, "etcd at ", url_, " answers ", answer.substr(0, 200));
  std::vector<EtcdKey> keys;
  if (const auto kvs = told.find("kvs"); kvs != told.end() && kvs->is_array())
    for (const Json& each : *kvs)
      if (each.is_object())
        keys.push_back({text_of(each, "key"), text_of(each, "value"), number_of(each, "create_revision"),
                        number_of(each, "mod_revision")});
  std::sort(keys.begin(), keys.end(), [](const EtcdKey& a, const EtcdKey& b) { return a.created < b.created; });
  return keys;
}

}  // namespace streamvec
