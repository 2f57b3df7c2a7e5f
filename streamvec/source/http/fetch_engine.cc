#include "streamvec/source/http/fetch_engine.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "streamvec/source/time_text.h"

namespace streamvec {
namespace {

using Milliseconds = Fetcher::Milliseconds;
using Clock = Deadline::Clock;

bool is_redirect(int32_t http_status) {
  return http_status == 301 || http_status == 302 || http_status == 303 || http_status == 307 || http_status == 308;
}

// Whether an answer tells of a host in trouble, which is then left alone for a while.
bool blames_host(const Answer& answer) {
  if (answer.status.ok()) return http_status_may_pass(answer.http_status);
  const Code code = answer.status.code();
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kDataLoss;
}

Status status_of(const Url& url, const Answer& answer, bool conditional) {
  if (!answer.status.ok()) return error(answer.status.code(), url.text, ": ", answer.status.message());
  const int32_t http_status = answer.http_status;
  if (http_status >= 200 && http_status < 300) return {};
  if (http_status == 304 && conditional) return {};
  Code code = Code::kFailedPrecondition;
  if (http_status_may_pass(http_status)) code = Code::kUnavailable;
  if (http_status == 404 || http_status == 410) code = Code::kNotFound;
  if (http_status == 401 || http_status == 403 || http_status == 451) code = Code::kPermissionDenied;
  return error(code, url.text, ": the server answers ", http_status);
}

// Seconds or a date (RFC 9110, 10.2.3); 0 for what is neither or in the past.
Milliseconds retry_after_of(const std::string& value, Milliseconds most) {
  if (value.empty()) return {};
  int64_t seconds = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (failure != std::errc() || end != value.data() + value.size()) {
    const Result<int64_t> time = parse_time(value);
    if (!time.ok()) return {};
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    seconds = *time - std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  seconds = std::clamp<int64_t>(seconds, 0, std::chrono::ceil<std::chrono::seconds>(most).count());
  return std::min<Milliseconds>(most, std::chrono::seconds(seconds));
}

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// curl_global_init must come before the first handle; the end of the program cleans up.
void start_libcurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  STREAMVEC_CHECK(code == CURLE_OK);
}

}  // namespace

Fetcher::Engine::Engine(Options options)
    : options_(std::move(options)),
      product_(options_.user_agent.substr(0, options_.user_agent.find_first_of("/ "))),
      random_(options_.seed) {
  start_libcurl();
  multi_ = curl_multi_init();
  STREAMVEC_CHECK(multi_ != nullptr);
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 64L);
  thread_ = std::thread([this] { run(); });
}

Fetcher::Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  curl_multi_wakeup(multi_);
  thread_.join();
  for (auto& [easy, running] : running_) curl_multi_remove_handle(multi_, easy);
  running_.clear();
  curl_multi_cleanup(multi_);
}

uint64_t Fetcher::Engine::open_channel() {
  const std::lock_guard lock(mutex_);
  channels_[++last_id_];
  return last_id_;
}

void Fetcher::Engine::close_channel(uint64_t channel) {
  {
    const std::lock_guard lock(mutex_);
    channels_.erase(channel);
    closed_.push_back(channel);
  }
  curl_multi_wakeup(multi_);
}

uint64_t Fetcher::Engine::submit(uint64_t channel, FetchRequest request) {
  Job job;
  job.channel = channel;
  job.request = std::move(request);
  job.left = options_.timeout;
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = job.id = ++last_id_;
    submitted_.push_back(std::move(job));
  }
  curl_multi_wakeup(multi_);
  return id;
}

std::optional<FetchResponse> Fetcher::Engine::take(uint64_t channel, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::deque<FetchResponse>& ready = channels_.at(channel);
  while (ready.empty()) {
    if (deadline.passed()) return std::nullopt;
    // A wait until the end of time overflows in the standard library.
    delivered_.wait_until(lock, std::min(deadline.when(), Clock::now() + std::chrono::hours(1)));
  }
  FetchResponse response = std::move(ready.front());
  ready.pop_front();
  return response;
}

void Fetcher::Engine::run() {
  for (;;) {
    take_submissions();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    const Clock::time_point next = start_ready();
    int still_running = 0;
    curl_multi_perform(multi_, &still_running);
    if (finish_ready()) continue;  // others may have their turn now
    const auto wait = std::chrono::ceil<Milliseconds>(next - Clock::now());
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 1'000)), nullptr);
  }
}

void Fetcher::Engine::take_submissions() {
  std::vector<Job> jobs;
  std::vector<uint64_t> closed;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(submitted_);
    closed.swap(closed_);
  }
  for (Job& job : jobs) enqueue(std::move(job), false);
  for (const uint64_t channel : closed) cancel(channel);
}

void Fetcher::Engine::enqueue(Job job, bool first) {
  Host& host = host_of(job.request.url);
  host.delay = std::max<Clock::duration>(host.delay, options_.host_delay);
  if (first) {
    host.queue.push_front(std::move(job));
  } else {
    host.queue.push_back(std::move(job));
  }
}

void Fetcher::Engine::cancel(uint64_t channel) {
  for (auto& [name, host] : hosts_) std::erase_if(host.queue, [&](const Job& job) { return job.channel == channel; });
  std::erase_if(running_, [&](const auto& entry) {
    const Running& running = entry.second;
    if (running.job.channel != channel) return false;
    Host& host = host_of(running.job.request.url);
    host.busy = false;
    host.free_at = Clock::now() + host.delay;
    curl_multi_remove_handle(multi_, entry.first);
    return true;
  });
}

// Starts what may start, and says when more may.
Clock::time_point Fetcher::Engine::start_ready() {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = now + std::chrono::seconds(1);
  // Rules that are learned on the way may put jobs at hosts not here yet, so the names are taken first.
  std::vector<Host*> waiting;
  for (auto& [name, host] : hosts_)
    if (!host.busy && !host.queue.empty()) waiting.push_back(&host);
  for (Host* host : waiting) {
    if (host->free_at > now) {
      next = std::min(next, host->free_at);
    } else if (static_cast<int32_t>(running_.size()) < options_.transfers_max) {
      start(*host);
    }
  }
  forget_idle();
  return next;
}

void Fetcher::Engine::start(Host& host) {
  while (!host.queue.empty() && may_fetch(host)) {
    Job job = std::move(host.queue.front());
    host.queue.pop_front();
    const auto rules = rules_.find(job.request.url.origin());
    if (options_.robots && job.robots_of.empty()) {
      host.delay = std::max<Clock::duration>(options_.host_delay, rules->second.crawl_delay);
      const bool allowed = rules->second.robots.allows(job.request.url.target());
      job.verdict = allowed ? rules->second.verdict : "forbidden by robots.txt";
      if (!allowed) {
        deliver(job, error(Code::kPermissionDenied, job.request.url.text, ": forbidden by robots.txt"), {});
        continue;
      }
    }
    return begin(host, std::move(job));
  }
}

bool Fetcher::Engine::private_ok(const Url& url) const {
  return std::any_of(options_.private_hosts.begin(), options_.private_hosts.end(), [&](const std::string& allowed) {
    return allowed == "*" || allowed == url.host || allowed == url.host + ":" + std::to_string(url.port);
  });
}

void Fetcher::Engine::begin(Host& host, Job job) {
  const bool robots = !job.robots_of.empty();
  Transfer::Limits limits = {
      .timeout = std::chrono::duration_cast<Milliseconds>(job.left),
      .connect_timeout = options_.connect_timeout,
      .body_bytes_max = robots ? static_cast<int64_t>(Robots::kBytesMax) : options_.body_bytes_max,
      .header_bytes_max = options_.header_bytes_max,
      .cut_body = robots,
      .private_ok = private_ok(job.request.url),
      .ca = options_.ca,
  };
  const std::string addresses = options_.resolve ? options_.resolve(job.request.url.host) : "";
  auto transfer = std::make_unique<Transfer>(job.request, options_.user_agent, addresses, std::move(limits));
  CURL* easy = transfer->handle();
  host.busy = true;
  running_.emplace(easy, Running{std::move(job), std::move(transfer), Clock::now()});
  STREAMVEC_CHECK(curl_multi_add_handle(multi_, easy) == CURLM_OK);
}

bool Fetcher::Engine::finish_ready() {
  int left = 0;
  bool any = false;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    finish(message->easy_handle, message->data.result);
    any = true;
  }
  return any;
}

void Fetcher::Engine::finish(CURL* easy, CURLcode code) {
  auto node = running_.extract(easy);
  Running& running = node.mapped();
  Answer answer = running.transfer->finish(code);
  curl_multi_remove_handle(multi_, easy);
  Job job = std::move(running.job);
  const Clock::duration used = Clock::now() - running.began;
  job.seconds += seconds_of(used);
  job.left -= used;
  Host& host = host_of(job.request.url);
  host.busy = false;
  mark_host(host, answer);
  settle(std::move(job), std::move(answer));
}

// When the host may be asked again.
void Fetcher::Engine::mark_host(Host& host, const Answer& answer) {
  host.failures = blames_host(answer) ? host.failures + 1 : 0;
  Clock::duration wait = host.delay;
  if (host.failures > 0) {
    wait = std::max<Clock::duration>(wait, backoff(host.failures));
    wait = std::max<Clock::duration>(wait, retry_after_of(answer.retry_after, options_.retry_after_max));
  }
  host.free_at = Clock::now() + wait;
}

Clock::duration Fetcher::Engine::backoff(int32_t failures) {
  const double first = seconds_of(options_.backoff_first), most = seconds_of(options_.backoff_max);
  const double wait = std::min(most, first * static_cast<double>(uint64_t{1} << std::min(failures - 1, 40)));
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(wait * (0.5 + 0.5 * static_cast<double>(random_.uniform()))));
}

void Fetcher::Engine::settle(Job job, Answer answer) {
  if (answer.status.ok() && is_redirect(answer.http_status) && !answer.location.empty())
    return redirect(std::move(job), std::move(answer));
  if (!job.robots_of.empty()) return settle_robots(job, answer);
  const bool conditional = !job.request.etag.empty() || !job.request.last_modified.empty();
  Status status = status_of(job.request.url, answer, conditional);
  deliver(job, std::move(status), std::move(answer));
}

void Fetcher::Engine::redirect(Job job, Answer answer) {
  const std::string from = job.request.url.text;
  Status status;
  if (++job.redirects > options_.redirects_max)
    status = error(Code::kFailedPrecondition, from, ": more than ", options_.redirects_max, " redirects");
  if (status.ok() && job.left <= Clock::duration::zero())
    status = error(Code::kDeadlineExceeded, from, ": its redirects take too long");
  Result<Url> next = job.request.url.resolve(answer.location);
  if (status.ok() && !next.ok()) status = error(Code::kInvalidArgument, from, " leads to ", next.status().message());
  if (status.ok()) {
    job.request.url = std::move(next).value();
    return enqueue(std::move(job), !job.robots_of.empty());
  }
  if (job.robots_of.empty()) return deliver(job, std::move(status), std::move(answer));
  // RFC 9309 lets a robots.txt behind too many redirects count as one that is not there.
  if (status.code() == Code::kFailedPrecondition)
    return learn_rules(job.robots_of, Robots::allow_all(), "allowed (robots.txt redirects too often)", false);
  answer.status = std::move(status);
  settle_robots(job, answer);
}

void Fetcher::Engine::deliver(const Job& job, Status status, Answer answer) {
  FetchResponse response;
  response.id = job.id;
  response.host_answers = answer.http_status != 0 && !blames_host(answer);
  response.status = std::move(status);
  response.http_status = answer.http_status;
  response.http_version = answer.http_version;
  response.url = job.request.url;
  response.body = std::move(answer.body);
  response.content_type = std::move(answer.content_type);
  response.etag = std::move(answer.etag);
  response.last_modified = std::move(answer.last_modified);
  response.max_age_s = answer.max_age_s;
  response.bytes = answer.bytes;
  response.seconds = job.seconds;
  response.host_wait_s = std::max(0.0, seconds_of(host_of(job.request.url).free_at - Clock::now()));
  response.robots = job.verdict;
  if (!response.status.ok()) response.body.clear();
  const std::lock_guard lock(mutex_);
  const auto channel = channels_.find(job.channel);
  if (channel == channels_.end()) return;
  channel->second.push_back(std::move(response));
  delivered_.notify_all();
}

// A host is remembered while it has work, a wait or failures; a dead one for an hour at most.
void Fetcher::Engine::forget_idle() {
  const Clock::time_point now = Clock::now();
  std::erase_if(hosts_, [&](const auto& entry) {
    const Host& host = entry.second;
    const Clock::duration kept = host.failures > 0 ? std::chrono::hours(1) : std::chrono::hours(0);
    return host.queue.empty() && !host.busy && host.free_at + kept <= now;
  });
}

}  // namespace streamvec
