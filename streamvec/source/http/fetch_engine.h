// The fetcher's thread: whose turn it is at which host, what robots.txt says, where redirects lead. Private to the
// fetcher.
#pragma once

#include <curl/curl.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/source/http/fetcher.h"
#include "streamvec/source/http/robots.h"
#include "streamvec/source/http/transfer.h"

namespace streamvec {

// Whether an answer with this status may be another one later.
inline bool http_status_may_pass(int32_t http_status) {
  return http_status == 408 || http_status == 425 || http_status == 429 || http_status >= 500;
}

class Fetcher::Engine {
 public:
  explicit Engine(Options options);
  ~Engine();

  const Options& options() const { return options_; }
  uint64_t open_channel();
  void close_channel(uint64_t channel);
  uint64_t submit(uint64_t channel, FetchRequest request);
  std::optional<FetchResponse> take(uint64_t channel, Deadline deadline);

 private:
  using Clock = Deadline::Clock;
  // A fetch on its way, at its present hop.
  struct Job {
    uint64_t channel = 0, id = 0;
    FetchRequest request;
    int32_t redirects = 0;
    Clock::duration left{};  // of its timeout
    double seconds = 0;      // used so far
    std::string verdict;     // of robots.txt
    std::string robots_of;   // the origin whose robots.txt this is, "" for a page
  };
  struct Host {
    std::deque<Job> queue;
    bool busy = false;
    Clock::time_point free_at{};  // when it may be asked again
    Clock::duration delay{};
    int32_t failures = 0;  // in a row
  };
  struct Rules {
    enum class State { kUnknown, kLoading, kKnown } state = State::kUnknown;
    Robots robots;
    std::string verdict;  // "robots.txt allows it", or why everything is allowed
    bool had = false;     // robots holds what the site once said
    Clock::duration crawl_delay{};
    Clock::time_point expires{};
  };
  struct Running {
    Job job;
    std::unique_ptr<Transfer> transfer;
    Clock::time_point began;
  };

  void run();
  void take_submissions();
  void cancel(uint64_t channel);
  Clock::time_point start_ready();
  void start(Host& host);
  bool may_fetch(Host& host);
  void begin(Host& host, Job job);
  bool finish_ready();
  void finish(CURL* easy, CURLcode code);
  void settle(Job job, Answer answer);
  void redirect(Job job, Answer answer);
  void settle_robots(const Job& job, const Answer& answer);
  void learn_rules(const std::string& origin, Robots robots, std::string verdict, bool had);
  void refuse_origin(const std::string& origin, const Status& status);
  void mark_host(Host& host, const Answer& answer);
  Clock::duration backoff(int32_t failures);
  void enqueue(Job job, bool first);
  void deliver(const Job& job, Status status, Answer answer);
  void forget_idle();
  void forget_rules(const Rules& kept);
  Host& host_of(const Url& url) { return hosts_[url.authority()]; }
  bool private_ok(const Url& url) const;

  const Options options_;
  const std::string product_;
  Random random_;
  CURLM* multi_;
  std::map<std::string, Host> hosts_;   // by authority
  std::map<std::string, Rules> rules_;  // by origin
  std::unordered_map<CURL*, Running> running_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable delivered_;
  std::vector<Job> submitted_;
  std::vector<uint64_t> closed_;
  std::map<uint64_t, std::deque<FetchResponse>> channels_;
  uint64_t last_id_ = 0;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace streamvec
