#include "streamvec/serve/grpc/query_calls.h"

#include "streamvec/core/clock.h"
#include "streamvec/serve/grpc/query_messages.h"

namespace streamvec {
namespace {

class RpcCall final : public Call {
 public:
  RpcCall(const ApiParts& parts, const RpcMethod& method, std::shared_ptr<GrpcExchange> exchange)
      : parts_(parts), method_(method), exchange_(std::move(exchange)) {}

  std::optional<SearchRequest> begin(const std::shared_ptr<const ServedModel>& model) override {
    auto answer = ask(model.get());
    if (!answer.ok()) {
      exchange_->end(answer.status());
      return std::nullopt;
    }
    answer_ = std::move(*answer);
    if (answer_.search) return std::move(answer_.search->request);
    exchange_->respond(std::move(answer_.message));
    return std::nullopt;
  }
  void finish(const std::shared_ptr<const ServedModel>& model, const std::vector<Neighbour>& found) override {
    exchange_->respond(answer_.finish(*model, found));
  }

 private:
  Result<RpcAnswer> ask(const ServedModel* model) const {
    if (model == nullptr && method_.needs_model)
      return error(Code::kUnavailable, "no model is served yet; ask again in a moment");
    return method_.ask(parts_, model, exchange_->request().message);
  }

  const ApiParts& parts_;
  const RpcMethod& method_;
  const std::shared_ptr<GrpcExchange> exchange_;
  RpcAnswer answer_;
};

class RpcReader final : public EventReader {
 public:
  explicit RpcReader(std::shared_ptr<GrpcExchange> exchange) : exchange_(std::move(exchange)) {}
  bool tell(const std::shared_ptr<const BoardEvent>& event) override { return exchange_->send(event_message(*event)); }
  bool keep_alive() override { return is_there(); }  // gRPC has pings of its own
  bool is_there() const override { return exchange_->is_open(); }
  void end() override { exchange_->end(error(Code::kUnauthenticated, "the token has expired")); }

 private:
  const std::shared_ptr<GrpcExchange> exchange_;
};

}  // namespace

Status QueryCalls::admit(GrpcRequest& request) {
  const RpcMethod* method = find_method(request.method);
  const auto now_s = static_cast<int64_t>(unix_now());
  const Role role = access_.role_of_authorization(request.authorization, request.proven, now_s);
  request.role_until_s = access_.expiry_of_authorization(request.authorization, now_s);
  if (role == Role::kNobody && !access_.asks_for_tokens() && access_.asks_for_certificates())
    return error(Code::kPermissionDenied, "this certificate has no role here");
  if (role == Role::kNobody)
    return error(Code::kUnauthenticated, "a valid token is needed, as metadata authorization: Bearer TOKEN");
  if (role < (method == nullptr ? Role::kQuery : method->role))
    return error(Code::kPermissionDenied, "these credentials do not allow this call");
  if (method == nullptr) return error(Code::kUnimplemented, "there is no method ", request.method);
  return {};
}

void QueryCalls::handle(std::shared_ptr<GrpcExchange> exchange) {
  const RpcMethod& method = *find_method(exchange->request().method);
  if (method.ask == nullptr) {
    auto kinds = wanted_kinds(exchange->request().message);
    if (!kinds.ok()) return exchange->end(kinds.status());
    auto reader = reader_until(exchange->request().role_until_s, std::make_shared<RpcReader>(exchange));
    if (!parts_.events.add_reader(std::move(reader), std::move(*kinds)))
      exchange->end(error(Code::kUnavailable, "too many readers of events"));
    return;
  }
  CallQueue& queue = method.lane == Lane::kSlow ? slow_ : calls_;
  const std::string client = exchange->request().client;
  if (!queue.push(client, std::make_unique<RpcCall>(parts_, method, exchange)))
    exchange->end(error(Code::kUnavailable, "too many calls wait; ask again in a moment"));
}

}  // namespace streamvec
