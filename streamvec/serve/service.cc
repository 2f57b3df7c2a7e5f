#include "streamvec/serve/service.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "streamvec/core/clock.h"
#include "streamvec/serve/api.h"
#include "streamvec/serve/assets.h"
#include "streamvec/serve/call_meter.h"
#include "streamvec/serve/call_queue.h"
#include "streamvec/serve/metrics_news.h"
#include "streamvec/serve/metrics_text.h"
#include "streamvec/serve/progress_json.h"
#ifdef STREAMVEC_GRPC
#include "streamvec/serve/grpc/query_calls.h"
#endif

namespace streamvec {
namespace {

constexpr double kStopGrace_s = 1;
constexpr int64_t kSlowWaitingMax = 32;

// Nothing but our own files and calls; no other page may show ours in a frame; types are never guessed.
std::string common_headers(bool tls) {
  std::string headers =
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
      "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "X-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Server: streamvec\r\n";
  if (tls) headers += "Strict-Transport-Security: max-age=31536000\r\n";
  return headers;
}

Status check_exposure(const Service::Options& options, const std::string& listen, const HostPort& address) {
  if (is_loopback(address.host) || !options.access.tokens.empty() || !options.tls.client_ca.empty()) return {};
  return error(Code::kInvalidArgument, "anybody who reaches ", listen,
               " could ask; give a token (STREAMVEC_TOKEN or --token-file) or --tls-client-ca, or listen on 127.0.0.1");
}

std::vector<std::string> call_names() {
  std::vector<std::string> names;
  for (const ApiCall& call : api_calls()) names.emplace_back(call.path);
  names.emplace_back("pages");
  names.emplace_back("other");
  return names;
}

class ServiceCore;

// A call that came over HTTP.
class HttpCall final : public Call {
 public:
  HttpCall(ServiceCore& service, const ApiCall& call, std::shared_ptr<HttpExchange> exchange)
      : service_(service), call_(call), exchange_(std::move(exchange)) {}
  std::optional<SearchRequest> begin(const std::shared_ptr<const ServedModel>& model) override;
  void finish(const std::shared_ptr<const ServedModel>& model, const std::vector<Neighbour>& found) override;

 private:
  Result<ApiAnswer> ask(const ServedModel* model) const;

  ServiceCore& service_;
  const ApiCall& call_;
  const std::shared_ptr<HttpExchange> exchange_;
  const Clock::time_point begin_ = Clock::now();
  ApiAnswer answer_;
};

class ServiceCore final : public Service, public HttpHandler {
 public:
  ServiceCore(Options options, const HostPort& address)
      : options_(std::move(options)),
        access_(with_own_name(options_.access, address)),
        meter_(call_names()),
        metrics_(options_.directory, options_.kind == "serve", events_),
        models_(board_options()),
        history_(options_.directory),
        parts_{models_,
               events_,
               history_,
               options_.directory,
               options_.kind,
               options_.version,
               [this] { return figures(); }},
        openapi_(std::make_shared<const std::string>(to_text(openapi(options_.version)))),
        slow_(
            {.threads = 1, .waiting_max = kSlowWaitingMax, .client_waiting_max = 8, .together_max = 1, .name = "slow"},
            [this] { return models_.current(); }),
        calls_({.threads = threads_wanted(options_.threads)}, [this] { return models_.current(); }) {}

  ~ServiceCore() override { stop(); }

  Status listen(const HostPort& address) {
    HttpServer::Options server;
    server.address = address;
    server.limits = options_.limits;
    server.tls = options_.tls;
    server.common_headers = common_headers(options_.tls.on());
    STREAMVEC_ASSIGN_OR_RETURN(server_, HttpServer::listen(server, *this));
    access_.use_port(server_->port());
    metrics_.recall();
    const std::string host = address.host.find(':') == std::string::npos ? address.host : "[" + address.host + "]";
    url_ = (options_.tls.on() ? "https://" : "http://") + host + ":" + std::to_string(server_->port());
    if (!options_.listen_grpc.empty()) STREAMVEC_RETURN_IF_ERROR(listen_grpc());
    server_->begin();
    watch_ = std::thread([this] { watch(); });
    return {};
  }

  Status listen_grpc() {
#ifdef STREAMVEC_GRPC
    GrpcServer::Options server;
    STREAMVEC_ASSIGN_OR_RETURN(server.address, parse_host_port(options_.listen_grpc));
    STREAMVEC_RETURN_IF_ERROR(check_exposure(options_, options_.listen_grpc, server.address));
    server.limits = options_.limits;
    server.tls = options_.tls;
    STREAMVEC_ASSIGN_OR_RETURN(grpc_, GrpcServer::start(server, grpc_calls_));
    grpc_address_ = server.address.host + ":" + std::to_string(grpc_->port());
    return {};
#else
    return error(Code::kUnimplemented, "this build of streamvec has no gRPC; ask over HTTP");
#endif
  }

  std::string url() const override {
    return url_;
  }
  std::string grpc_address() const override {
    return grpc_address_;
  }

  void show(std::shared_ptr<const Snapshot> snapshot) override {
    models_.publish(std::move(snapshot));
  }
  void show(const TrainProgress& progress) override {
    events_.tell("progress", to_json(progress, unix_now()), true);
    const std::lock_guard lock(mutex_);
    last_progress_ = progress;
  }
  void show_total(const TrainProgress& progress) override {
    TrainProgress total = progress;
    {
      const std::lock_guard lock(mutex_);
      if (last_progress_) add_last_report(*last_progress_, total);
    }
    events_.tell("progress", to_json(total, unix_now()), true);
  }
  void show(const StreamMetrics& metrics) override {
    metrics_.tell(to_json(metrics));
  }
  void show_trouble(const std::string& text) override {
    models_.set_trouble(text);
  }
  void show_end(const std::string& why) override {
    events_.tell("end", {{"time", unix_now()}, {"why", why}});
  }
  void await_served() override {
    models_.await_served();
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (watch_.joinable()) watch_.join();
#ifdef STREAMVEC_GRPC
    if (grpc_ != nullptr) grpc_->stop(kStopGrace_s);
#endif
    if (server_ != nullptr) server_->stop(kStopGrace_s);
  }

  std::optional<HttpResponse> admit(HttpRequest& request, Role proven, bool tls) override {
    const ApiCall* call = find_call(request.path);
    const bool is_page = call == nullptr;
    if (auto refusal = access_.check_site(request, tls, is_page)) return refusal;
    const auto now_s = static_cast<int64_t>(unix_now());
    request.role = access_.role_of(request, proven, now_s);
    request.role_until_s = access_.expiry_of(request, now_s);
    if (call == nullptr) return admit_page(request);
    const bool asks_methods = request.method == "OPTIONS";
    // A browser asks for a page of a site that is allowed before it sends a token.
    if (asks_methods && !request.header("origin").empty()) return preflight(request, *call);
    // Before the method: who may not ask learns nothing.
    if (auto refusal = access_.check_role(request, call->role)) return refusal;
    if (asks_methods) return preflight(request, *call);
    if (!allows(*call, request.method)) {
      HttpResponse refusal = error_response(405, "this call is made by " + std::string(call->methods));
      refusal.headers.push_back({"Allow", allowed_methods(*call)});
      return refusal;
    }
    if (request.method == "POST" && media_type(request.header("content-type")) != "application/json")
      return error_response(415, "the body has to be application/json");
    return std::nullopt;
  }

  void refused(const HttpRequest& request, int status) override {
    if (status < 400) return;
    const ApiCall* call = find_call(request.path);
    const bool is_page = find_asset(request.path) != nullptr;
    meter_.count(call != nullptr ? number_of(*call) : api_calls().size() + (is_page ? 0 : 1), status);
  }

  void handle(std::shared_ptr<HttpExchange> exchange) override {
    const ApiCall* call = find_call(exchange->request().path);
    if (call == nullptr) return exchange->respond(page(exchange->request()));
    if (call->lane == Lane::kNetwork) return answer_at_once(*call, exchange);
    CallQueue& queue = call->lane == Lane::kSlow ? slow_ : calls_;
    auto waiting = std::make_unique<HttpCall>(*this, *call, exchange);
    if (!queue.push(exchange->request().client, std::move(waiting)))
      respond(*call, *exchange, error_response(503, "too many calls wait; ask again in a moment"), Clock::now());
  }

  // Adds what every answer of a call has, and measures it.
  void respond(const ApiCall& call, HttpExchange& exchange, HttpResponse response, Clock::time_point begin) {
    if (response.content_type == "application/json") response.headers.push_back({"Cache-Control", "no-store"});
    meter_.record(number_of(call), response.status, std::chrono::duration<double>(Clock::now() - begin).count());
    exchange.respond(std::move(response));
  }

  std::vector<NameAndText> headers_for(const HttpRequest& request) const override {
    const std::string origin = access_.allowed_origin(request);
    if (origin.empty()) return {};
    return {{"Access-Control-Allow-Origin", origin}, {"Vary", "Origin"}};
  }

  const ApiParts& parts() const {
    return parts_;
  }

 private:
  static size_t number_of(const ApiCall& call) {
    return static_cast<size_t>(&call - api_calls().data());
  }

  static int32_t threads_wanted(int32_t threads) {
    const auto cores = static_cast<int32_t>(std::thread::hardware_concurrency());
    return threads > 0 ? threads : std::clamp(cores / 2, 1, 4);
  }

  static Access::Options with_own_name(Access::Options access, const HostPort& address) {
    access.hosts.push_back(address.host);
    return access;
  }

  ModelBoard::Options board_options() {
    ModelBoard::Options options;
    options.exact_words_max = options_.exact_words_max;
    options.index.threads = threads_wanted(options_.threads);
    options.on_model = [this](const ServedModel& model) {
      events_.tell("model", {{"time", model.time_s()},
                             {"number", model.number()},
                             {"step", model.snapshot().step},
                             {"words", model.vocabulary().size()},
                             {"dim", model.dim()}});
    };
    options.on_map = [this](const MapFrame& frame) {
      const Json json = to_json(frame);
      {
        const std::lock_guard lock(mutex_);
        map_ = std::make_shared<const std::string>(to_text(json));
      }
      events_.tell("map", json);
    };
    return options;
  }

  static std::string allowed_methods(const ApiCall& call) {
    std::string methods;
    for (const char c : call.methods) c == ' ' ? methods += ", " : methods += c;
    if (allows(call, "GET")) methods += ", HEAD";
    return methods + ", OPTIONS";
  }

  std::optional<HttpResponse> admit_page(const HttpRequest& request) const {
    if (find_asset(request.path) == nullptr) {
      // Pages are for everybody, so that a browser can show where to give the token; what is not there is not.
      if (auto refusal = access_.check_role(request, Role::kMetrics)) return refusal;
      return error_response(404, "there is nothing here; /api/openapi.json has all calls");
    }
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    HttpResponse refusal = error_response(405, "pages are read by GET");
    refusal.headers.push_back({"Allow", "GET, HEAD"});
    return refusal;
  }

  HttpResponse preflight(const HttpRequest& request, const ApiCall& call) const {
    HttpResponse response;
    response.status = 204;
    response.headers = {{"Allow", allowed_methods(call)}};
    if (!access_.allowed_origin(request).empty()) {
      response.headers.push_back({"Access-Control-Allow-Methods", allowed_methods(call)});
      response.headers.push_back({"Access-Control-Allow-Headers", "Authorization, Content-Type"});
      response.headers.push_back({"Access-Control-Max-Age", "600"});
    }
    return response;
  }

  HttpResponse page(const HttpRequest& request) {
    const Asset& asset = *find_asset(request.path);
    HttpResponse response;
    response.content_type = std::string(asset.content_type);
    response.headers = {{"Cache-Control", "no-cache"}, {"ETag", std::string(asset.etag)}};
    if (names_tag(request.header("if-none-match"), asset.etag))
      response.status = 304;
    else
      response.body = std::string(asset.bytes);
    meter_.record(api_calls().size(), response.status, 0);
    return response;
  }

  // Calls whose answers are ready.
  void answer_at_once(const ApiCall& call, const std::shared_ptr<HttpExchange>& exchange) {
    const Clock::time_point begin = Clock::now();
    const auto arguments = CallArguments::of(exchange->request());
    Status status = arguments.ok() ? check_names(call, *arguments) : arguments.status();
    if (!status.ok()) return respond(call, *exchange, error_response(status), begin);
    if (call.path == "/api/events") return begin_events(call, *arguments, exchange);
    HttpResponse response;
    response.content_type = std::string(call.content_type);
    if (call.path == "/api/openapi.json") {
      response.shared_body = openapi_;
    } else if (call.path == "/api/map") {
      const std::lock_guard lock(mutex_);
      if (map_ == nullptr)
        response = error_response(503, "no picture has been drawn yet");
      else
        response.shared_body = map_;
    } else if (call.path == "/api/health") {
      response = health();
    } else if (call.path == "/metrics") {
      response.body = figures();
    } else {
      response = call.path == "/api/login" ? login(*arguments) : logout();
    }
    respond(call, *exchange, std::move(response), begin);
  }

  std::string figures() const {
    const auto model = models_.current();
    return metrics_text(events_.last("progress"), events_.last("metrics"), model.get(), server_->statistics(),
                        calls_.waiting() + slow_.waiting()) +
           meter_.text();
  }

  HttpResponse health() const {
    const auto model = models_.current();
    const std::string trouble = models_.trouble();
    HttpResponse response;
    response.status = model == nullptr ? 503 : 200;
    const Json served =
        model == nullptr ? Json(nullptr) : Json{{"number", model->number()}, {"step", model->snapshot().step}};
    response.body = to_text({{"status", model == nullptr ? "waiting for a model" : "ok"},
                             {"model", served},
                             {"trouble", trouble.empty() ? Json(nullptr) : Json(trouble)}});
    return response;
  }

  HttpResponse login(const CallArguments& arguments) const {
    const auto token = arguments.text("token");
    if (!token.ok()) return error_response(token.status());
    const Role role =
        access_.asks_for_tokens() ? access_.role_of_token(*token, static_cast<int64_t>(unix_now())) : Role::kQuery;
    if (role == Role::kNobody) return error_response(401, "this is no valid token");
    HttpResponse response;
    response.body = to_text({{"role", role == Role::kQuery ? "query" : "metrics"}});
    if (access_.asks_for_tokens())
      response.headers.push_back({"Set-Cookie", access_.cookie() + "=" + *token + cookie_manners()});
    return response;
  }

  HttpResponse logout() const {
    HttpResponse response;
    response.body = to_text({{"role", "nobody"}});
    response.headers.push_back({"Set-Cookie", access_.cookie() + "=; Max-Age=0" + cookie_manners()});
    return response;
  }

  std::string cookie_manners() const {
    return std::string("; Path=/; HttpOnly; SameSite=Strict") + (options_.tls.on() ? "; Secure" : "");
  }

  void begin_events(const ApiCall& call, const CallArguments& arguments,
                    const std::shared_ptr<HttpExchange>& exchange) {
    std::vector<std::string> kinds;
    if (arguments.given("kind")) kinds = arguments.texts("kind").value();
    for (const std::string& kind : kinds)
      if (!EventBoard::is_kind(kind)) return respond(call, *exchange, error_response(400, kNoSuchKind), Clock::now());
    if (exchange->request().method == "HEAD") {
      HttpResponse head;
      head.content_type = std::string(call.content_type);
      return respond(call, *exchange, std::move(head), Clock::now());
    }
    if (events_.readers() >= kReadersMax)
      return respond(call, *exchange, error_response(503, "too many readers of events"), Clock::now());
    meter_.record(number_of(call), 200, 0);
    const int64_t until_s = exchange->request().role_until_s;
    events_.add_reader(reader_until(until_s, sse_reader(exchange->begin_events())), std::move(kinds));
  }

  static Status check_names(const ApiCall& call, const CallArguments& arguments) {
    std::set<std::string> names;
    for (const ApiParameter& parameter : call.parameters) names.emplace(parameter.name);
    return arguments.only(names);
  }

  // What is to be done again and again.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatchEvery, [&] { return stopping_; })) {
      lock.unlock();
      events_.keep_alive(Clock::now());
      if (options_.kind == "serve") metrics_.follow();
      lock.lock();
    }
  }

  static constexpr int64_t kReadersMax = 256;
  static constexpr std::chrono::milliseconds kWatchEvery{500};

  const Options options_;
  Access access_;
  CallMeter meter_;
  EventBoard events_;
  std::mutex mutex_;  // of map_, last_progress_ and stopping_
  std::condition_variable changed_;
  std::shared_ptr<const std::string> map_;
  std::optional<TrainProgress> last_progress_;
  bool stopping_ = false;
  MetricsNews metrics_;
  ModelBoard models_;
  HistoryReader history_;
  const ApiParts parts_;
  const std::shared_ptr<const std::string> openapi_;
  std::unique_ptr<HttpServer> server_;
  std::string url_;
  std::thread watch_;
  std::string grpc_address_;
  CallQueue slow_, calls_;  // gone before what their threads use
#ifdef STREAMVEC_GRPC
  QueryCalls grpc_calls_{parts_, access_, calls_, slow_};
  std::unique_ptr<GrpcServer> grpc_;
#endif
};

Result<ApiAnswer> HttpCall::ask(const ServedModel* model) const {
  if (model == nullptr && call_.needs_model)
    return error(Code::kUnavailable, "no model is served yet; ask again in a moment");
  STREAMVEC_ASSIGN_OR_RETURN(const CallArguments arguments, CallArguments::of(exchange_->request()));
  std::set<std::string> names;
  for (const ApiParameter& parameter : call_.parameters) names.emplace(parameter.name);
  STREAMVEC_RETURN_IF_ERROR(arguments.only(names));
  return call_.ask(service_.parts(), model, arguments);
}

std::optional<SearchRequest> HttpCall::begin(const std::shared_ptr<const ServedModel>& model) {
  auto answer = ask(model.get());
  if (!answer.ok()) {
    service_.respond(call_, *exchange_, error_response(answer.status()), begin_);
    return std::nullopt;
  }
  answer_ = std::move(*answer);
  if (answer_.search) return std::move(answer_.search->request);
  HttpResponse response;
  response.body = to_text(answer_.json);
  service_.respond(call_, *exchange_, std::move(response), begin_);
  return std::nullopt;
}

void HttpCall::finish(const std::shared_ptr<const ServedModel>& model, const std::vector<Neighbour>& found) {
  HttpResponse response;
  response.body = to_text(answer_.finish(*model, found));
  service_.respond(call_, *exchange_, std::move(response), begin_);
}

}  // namespace

Result<std::unique_ptr<Service>> Service::start(Options options) {
  STREAMVEC_ASSIGN_OR_RETURN(const HostPort address, parse_host_port(options.listen));
  STREAMVEC_RETURN_IF_ERROR(check_exposure(options, options.listen, address));
  for (const std::string& origin : options.access.origins) STREAMVEC_RETURN_IF_ERROR(check_origin(origin));
  options.access.certificates = !options.tls.client_ca.empty();
  auto service = std::make_unique<ServiceCore>(std::move(options), address);
  STREAMVEC_RETURN_IF_ERROR(service->listen(address));
  return std::unique_ptr<Service>(std::move(service));
}

}  // namespace streamvec
