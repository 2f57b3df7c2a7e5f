#include "streamvec/source/http/transfer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "streamvec/source/feed_text.h"
#include "streamvec/source/http/address.h"

namespace streamvec {
namespace {

constexpr size_t kValueBytesMax = 4096;  // of a header that is kept

void append(std::unique_ptr<curl_slist, void (*)(curl_slist*)>& list, const std::string& line) {
  list.reset(curl_slist_append(list.release(), line.c_str()));
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low;
}

// The seconds of "public, max-age=600"; 0 when there are none.
double max_age_of(std::string_view value) {
  const std::string low = lower(value);
  const size_t at = low.find("max-age=");
  if (at == std::string::npos || (at >= 2 && low.compare(at - 2, 2, "s-") == 0)) return 0;
  int64_t seconds = 0;
  std::from_chars(low.data() + at + 8, low.data() + low.size(), seconds);
  return static_cast<double>(std::clamp<int64_t>(seconds, 0, 31'536'000));
}

Code code_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Code::kDeadlineExceeded;
    case CURLE_PARTIAL_FILE:
      return Code::kDataLoss;
    case CURLE_FILESIZE_EXCEEDED:
      return Code::kResourceExhausted;
    case CURLE_PEER_FAILED_VERIFICATION:
      return Code::kFailedPrecondition;
    default:
      return Code::kUnavailable;
  }
}

}  // namespace

Transfer::Transfer(const FetchRequest& request, const std::string& user_agent, const std::string& addresses,
                   Limits limits)
    : host_(request.url.host),
      limits_(std::move(limits)),
      easy_(curl_easy_init(), curl_easy_cleanup),
      headers_(nullptr, curl_slist_free_all),
      addresses_(nullptr, curl_slist_free_all) {
  CURL* easy = easy_.get();
  STREAMVEC_CHECK(easy != nullptr);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.text.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a resolver that hangs does not hold up the end
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(limits_.timeout.count())));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(limits_.connect_timeout.count())));
  if (!limits_.cut_body)
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits_.body_bytes_max));
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  if (!limits_.ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, limits_.ca.c_str());
  if (!addresses.empty()) append(addresses_, host_ + ":" + std::to_string(request.url.port) + ":" + addresses);
  if (addresses_ != nullptr) curl_easy_setopt(easy, CURLOPT_RESOLVE, addresses_.get());
  set_headers(request);
}

void Transfer::set_headers(const FetchRequest& request) {
  append(headers_, "Accept: " + request.accept);
  append(headers_, "Accept-Encoding: " + std::string(kAcceptEncoding));
  if (!request.etag.empty()) append(headers_, "If-None-Match: " + request.etag);
  if (!request.last_modified.empty()) append(headers_, "If-Modified-Since: " + request.last_modified);
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
}

size_t Transfer::on_header(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<Transfer*>(self)->header({bytes, size * count}) ? size * count : 0;
}

size_t Transfer::on_body(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<Transfer*>(self)->body({bytes, size * count}) ? size * count : CURL_WRITEFUNC_ERROR;
}

// The address here is the one that connect() gets: whatever the name resolved to a moment ago does not matter.
curl_socket_t Transfer::on_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto* transfer = static_cast<Transfer*>(self);
  const std::string_view special = special_address(address->addr);
  if (!special.empty() && !transfer->limits_.private_ok) {
    transfer->refusal_ = address_text(address->addr) + " (" + std::string(special) + ")";
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool Transfer::header(std::string_view line) {
  header_bytes_ += static_cast<int64_t>(line.size());
  if (header_bytes_ > limits_.header_bytes_max) {
    failure_ = error(Code::kResourceExhausted, "its headers are longer than ", limits_.header_bytes_max, " bytes");
    return false;
  }
  if (line.starts_with("HTTP/")) {  // a new answer: what an interim one said does not count
    answer_ = {};
    encoding_.clear();
    headers_whole_ = false;
  }
  if (line == "\r\n" || line == "\n") headers_whole_ = true;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  const std::string name = lower(line.substr(0, colon));
  const std::string value(feed::trimmed(line.substr(colon + 1)).substr(0, kValueBytesMax));
  if (name == "content-type") answer_.content_type = value;
  if (name == "content-encoding") encoding_ += (encoding_.empty() ? "" : ",") + value;
  if (name == "etag") answer_.etag = value;
  if (name == "last-modified") answer_.last_modified = value;
  if (name == "location") answer_.location = value;
  if (name == "retry-after") answer_.retry_after = value;
  if (name == "cache-control") answer_.max_age_s = max_age_of(value);
  return true;
}

bool Transfer::body(std::string_view bytes) {
  answer_.bytes += static_cast<int64_t>(bytes.size());
  if (decoder_ == nullptr) {
    Result<std::unique_ptr<ContentDecoder>> decoder = ContentDecoder::make(encoding_);
    if (!decoder.ok()) {
      failure_ = decoder.status();
      return false;
    }
    decoder_ = std::move(decoder).value();
  }
  failure_ = decoder_->add(bytes, static_cast<size_t>(limits_.body_bytes_max), answer_.body);
  cut_ = limits_.cut_body && failure_.code() == Code::kResourceExhausted;
  return failure_.ok();
}

Status Transfer::judge(CURLcode code) {
  if (cut_) return {};
  if (!failure_.ok()) return failure_;
  if (code != CURLE_OK && !refusal_.empty())
    return error(Code::kPermissionDenied, host_, " has the address ", refusal_,
                 "; only public addresses are read unless the host is allowed by --allow-private ", host_);
  if (code == CURLE_FILESIZE_EXCEEDED)
    return error(Code::kResourceExhausted, "larger than ", limits_.body_bytes_max, " bytes");
  if (code == CURLE_UNSUPPORTED_PROTOCOL) return error(Code::kUnavailable, "the answer is no HTTP");
  if (code != CURLE_OK) return error(code_of(code), curl_easy_strerror(code));
  // libcurl takes a connection that is closed among the headers for the end of an answer without a body.
  if (!headers_whole_) return error(Code::kDataLoss, "the answer ends among its headers");
  return decoder_ == nullptr ? Status() : decoder_->finish();
}

Answer Transfer::finish(CURLcode code) {
  answer_.status = judge(code);
  answer_.refused = answer_.status.code() == Code::kPermissionDenied;
  long http_status = 0, http_version = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &http_status);
  curl_easy_getinfo(easy_.get(), CURLINFO_HTTP_VERSION, &http_version);
  answer_.http_status = static_cast<int32_t>(http_status);
  if (http_status != 0) answer_.http_version = http_version == CURL_HTTP_VERSION_2_0 ? 2 : 1;
  if (!answer_.status.ok()) answer_.body.clear();
  return std::move(answer_);
}

}  // namespace streamvec
