// One request to one host by libcurl: limits, checks and decoding as the answer arrives. Private to the fetcher.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/source/http/content_decoder.h"
#include "streamvec/source/http/fetcher.h"

namespace streamvec {

// What came back, before redirects and statuses are judged.
struct Answer {
  Status status;  // ok: a whole answer with whatever status
  int32_t http_status = 0, http_version = 0;
  std::string body, content_type, etag, last_modified, location, retry_after;
  double max_age_s = 0;
  int64_t bytes = 0;
  bool refused = false;  // nothing was asked of the host: its address is not public
};

class Transfer {
 public:
  struct Limits {
    std::chrono::milliseconds timeout, connect_timeout;
    int64_t body_bytes_max, header_bytes_max;
    bool cut_body = false;    // what is over body_bytes_max is left out, and is no error
    bool private_ok = false;  // any address will do
    std::string ca = {};      // as Fetcher::Options::ca
  };
  // `addresses` as Fetcher::Options::resolve gives them.
  Transfer(const FetchRequest& request, const std::string& user_agent, const std::string& addresses, Limits limits);

  CURL* handle() const { return easy_.get(); }
  // Once libcurl is done with the handle.
  Answer finish(CURLcode code);

 private:
  static size_t on_header(char* bytes, size_t size, size_t count, void* self);
  static size_t on_body(char* bytes, size_t size, size_t count, void* self);
  static curl_socket_t on_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  bool header(std::string_view line);
  bool body(std::string_view bytes);
  Status judge(CURLcode code);
  void set_headers(const FetchRequest& request);

  using List = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;
  std::string host_;
  Limits limits_;
  std::unique_ptr<CURL, void (*)(CURL*)> easy_;
  List headers_, addresses_;
  Answer answer_;
  std::string encoding_;
  std::unique_ptr<ContentDecoder> decoder_;
  int64_t header_bytes_ = 0;
  bool headers_whole_ = false;
  bool cut_ = false;     // enough of the body is there
  Status failure_;       // what made a callback stop the transfer
  std::string refusal_;  // which address was not connected to, and why
};

}  // namespace streamvec
