// Fetches web pages politely and safely: from many hosts at once, from each one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/source/http/url.h"

namespace streamvec {

struct FetchRequest {
  Url url;
  std::string etag = {}, last_modified = {};  // of the copy one has: sent as If-None-Match, If-Modified-Since unless ""
  std::string accept = "text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1";
};

struct FetchResponse {
  uint64_t id = 0;  // what submit() returned
  // ok: 2xx, or 304 to a request with etag or last_modified. Otherwise why there is no body:
  // kUnavailable (may pass: 408, 425, 429, 5xx, no connection, reset, robots.txt cannot be had), kDeadlineExceeded
  // (took too long), kDataLoss (a body cut short or damaged), kNotFound (404, 410), kPermissionDenied (401, 403, 451,
  // robots.txt, an address that is not public), kResourceExhausted (over a size limit), kFailedPrecondition
  // (too many redirects, other statuses), kInvalidArgument (a redirect to what is no http or https URL).
  Status status;
  int32_t http_status = 0;   // of the last answer, 0 when none came
  int32_t http_version = 0;  // likewise: 1 (HTTP/1.0, 1.1) or 2
  Url url;                   // after redirects
  std::string body;          // decoded
  std::string content_type, etag, last_modified;
  double max_age_s = 0;       // Cache-Control, 0 when it says nothing
  int64_t bytes = 0;          // of the body, as it came over the network
  double seconds = 0;         // without waiting for its turn
  double host_wait_s = 0;     // until its host may be asked again: delay, Retry-After or backoff
  std::string robots;         // what robots.txt said of it: "allowed", "forbidden by robots.txt", ...
  bool host_answers = false;  // an answer came that does not blame the host: it is up
};

// One thread does all transfers (libcurl's multi interface, HTTP/2 where offered). At most one transfer and one
// connection per host, `host_delay` between the end of one and the begin of the next; more when robots.txt asks for it
// by Crawl-delay, when the host says Retry-After, or after failures (doubled each time, with jitter). Redirects are
// followed here: each hop waits its turn at its host and passes every check again. robots.txt is fetched before the
// first page of an origin and kept for a day (RFC 9309): 4xx allows all; 429, 5xx, a timeout or no connection forbid
// all until it can be had, unless an older copy is there.
//
// An address is checked when the socket to it is opened, so neither a spelling nor a changed DNS answer nor a redirect
// gets around it. Proxies of the environment, cookies, .netrc and HTTP/0.9 are not used.
//
// Thread-safe. Memory: transfers_max bodies, the answers nobody took yet, and what it knows of hosts with work.
class Fetcher {
 public:
  using Milliseconds = std::chrono::milliseconds;
  struct Options {
    std::string user_agent = default_user_agent();  // its word before "/" is what robots.txt may name
    Milliseconds host_delay{1'000};                 // less presses hosts harder
    Milliseconds crawl_delay_max{30'000};           // the most that robots.txt can ask for
    Milliseconds timeout{30'000};                   // of a fetch with all its redirects, waiting for turns left out
    Milliseconds connect_timeout{10'000};
    int64_t body_bytes_max = int64_t{8} << 20;  // decoded
    int64_t header_bytes_max = int64_t{64} << 10;
    int32_t redirects_max = 5;
    int32_t transfers_max = 16;                // at once, over all hosts
    Milliseconds retry_after_max{3'600'000};   // the most that Retry-After can ask for
    Milliseconds backoff_first{1'000};         // after a failure; doubled with each further one
    Milliseconds backoff_max{30'000};          // more spares dead hosts, and notices later that they are well
    Milliseconds robots_lifetime{86'400'000};  // RFC 9309: no more than 24 hours
    bool robots = true;                        // whether robots.txt is honoured; off for one's own hosts only
    std::string ca;                            // file of certificates that vouch for hosts; "": the system's
    // Hosts whose address may be private, loopback or otherwise special: "intranet", "127.0.0.1:8080" (with a port:
    // that port only), "*" (all: every link of every page can then reach the machine's own network).
    std::vector<std::string> private_hosts;
    uint64_t seed = 1;  // of the jitter
    // The addresses of a host ("192.0.2.1,2001:db8::1") instead of the system's resolver; "" leaves it to that.
    std::function<std::string(const std::string& host)> resolve;
  };
  static std::string default_user_agent();  // "streamvec/VERSION (...)"

  explicit Fetcher(Options options);
  ~Fetcher();  // ends all transfers; within a second
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // The one that sources share unless they are given another, so that all of them together keep to a host's delay.
  static Fetcher& process();
  // Its options. REQUIRES: process() was not called yet.
  static void configure_process(Options options);

  const Options& options() const;

  // One user's requests and their answers. Must not outlive its Fetcher; destroying it cancels what is under way.
  class Channel {
   public:
    explicit Channel(Fetcher& fetcher);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    uint64_t submit(FetchRequest request);
    // The next answer, in the order they become ready; nothing when the deadline passes before.
    std::optional<FetchResponse> take(Deadline deadline);
    // Submits and waits for the answer. REQUIRES: nothing else is under way.
    FetchResponse get(FetchRequest request, Deadline deadline);

   private:
    Fetcher& fetcher_;
    uint64_t channel_;
  };

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace streamvec
