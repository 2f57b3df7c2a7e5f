// What the fetcher knows of each origin's robots.txt.
#include <algorithm>
#include <utility>

#include "streamvec/source/http/fetch_engine.h"

namespace streamvec {
namespace {

constexpr size_t kOriginsMax = 10'000;      // of which rules are kept
constexpr std::chrono::hours kOldRules{1};  // an old copy is used this long before a new one is asked for

}  // namespace

// Whether the first in the queue can be judged; if not, its robots.txt is on the way or put before it.
bool Fetcher::Engine::may_fetch(Host& host) {
  const Job& job = host.queue.front();
  if (!options_.robots || !job.robots_of.empty()) return true;
  const std::string origin = job.request.url.origin();
  Rules& rules = rules_[origin];
  forget_rules(rules);
  if (rules.state == Rules::State::kLoading) return false;
  if (rules.state == Rules::State::kKnown && Clock::now() < rules.expires) return true;
  rules.state = Rules::State::kLoading;
  Job robots;
  robots.request.url = std::move(job.request.url.resolve("/robots.txt")).value();
  robots.request.accept = "text/plain, */*;q=0.1";
  robots.left = options_.timeout;
  robots.robots_of = origin;
  host.queue.push_front(std::move(robots));
  return true;
}

// Makes room when there are too many; `kept` stays, and what is on its way.
void Fetcher::Engine::forget_rules(const Rules& kept) {
  if (rules_.size() <= kOriginsMax) return;
  std::erase_if(rules_, [&](const auto& entry) {
    return &entry.second != &kept && entry.second.state != Rules::State::kLoading;
  });
}

void Fetcher::Engine::settle_robots(const Job& job, const Answer& answer) {
  const std::string& origin = job.robots_of;
  const int32_t http_status = answer.http_status;
  if (answer.status.ok() && http_status >= 200 && http_status < 300)
    return learn_rules(origin, Robots::parse(answer.body, product_), "allowed by robots.txt", true);
  if (answer.status.ok() && http_status < 500 && !http_status_may_pass(http_status))
    return learn_rules(origin, Robots::allow_all(), "allowed (no robots.txt: " + std::to_string(http_status) + ")",
                       false);
  Rules& rules = rules_[origin];
  if (rules.had) {
    rules.state = Rules::State::kKnown;
    rules.expires = Clock::now() + kOldRules;
    return;
  }
  rules.state = Rules::State::kUnknown;
  if (answer.refused && job.redirects == 0) return refuse_origin(origin, answer.status);
  const std::string why =
      answer.status.ok() ? "the server answers " + std::to_string(http_status) : answer.status.message();
  refuse_origin(origin, error(Code::kUnavailable, "nothing of ", origin,
                              " is read while its robots.txt cannot be had (", why, ")"));
}

void Fetcher::Engine::learn_rules(const std::string& origin, Robots robots, std::string verdict, bool had) {
  Rules& rules = rules_[origin];
  rules.state = Rules::State::kKnown;
  rules.robots = std::move(robots);
  rules.verdict = std::move(verdict);
  rules.had = had;
  rules.expires = Clock::now() + options_.robots_lifetime;
  const std::chrono::duration<double> asked(rules.robots.crawl_delay_s()), most(options_.crawl_delay_max);
  rules.crawl_delay = std::chrono::duration_cast<Clock::duration>(std::min(asked, most));
  const Result<Url> url = Url::parse(origin);
  if (!url.ok()) return;
  Host& host = host_of(*url);
  host.delay = std::max<Clock::duration>(options_.host_delay, rules.crawl_delay);
  if (host.failures == 0) host.free_at = std::max(host.free_at, Clock::now() + host.delay);
}

// All that waits for an origin gets the same answer.
void Fetcher::Engine::refuse_origin(const std::string& origin, const Status& status) {
  const Result<Url> url = Url::parse(origin);
  if (!url.ok()) return;
  Host& host = host_of(*url);
  if (status.code() == Code::kUnavailable && host.failures == 0) {  // it was a host that it redirects to
    host.failures = 1;
    host.free_at = std::max(host.free_at, Clock::now() + backoff(1));
  }
  std::deque<Job> refused;
  for (Job& job : std::exchange(host.queue, {})) {
    const bool waits = job.robots_of.empty() && job.request.url.origin() == origin;
    (waits ? refused : host.queue).push_back(std::move(job));
  }
  for (Job& job : refused) {
    job.verdict = status.message();
    deliver(job, error(status.code(), job.request.url.text, ": ", status.message()), {});
  }
}

}  // namespace streamvec
