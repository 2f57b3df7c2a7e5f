#include "streamvec/serve/grpc/query_messages.h"

#include "streamvec/core/json.h"
#include "streamvec_query.pb.h"

namespace streamvec {
namespace {

namespace v1 = streamvec::v1;

// Protobuf's strings are UTF-8: bytes of words that are none become U+FFFD, as they do in JSON.
std::string clean(std::string_view text) {
  const Json quoted = std::string(text);
  return parse_ordered_json(json_text(quoted)).get<std::string>();
}

template <typename Message>
Result<Message> parsed(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes))
    return error(Code::kInvalidArgument, "the request is no ", message.GetTypeName());
  return message;
}

int64_t or_default(int64_t given, int64_t otherwise) {
  return given == 0 ? otherwise : given;
}

Status check_range(const char* name, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return {};
  return error(Code::kInvalidArgument, name, " has to be a whole number from 1 to ", max);
}

void fill(const ServedModel& model, v1::Served& served) {
  served.set_number(model.number());
  served.set_step(model.snapshot().step);
}

void fill(const StreamMoment& moment, v1::Moment& message) {
  message.set_step(moment.step);
  message.set_time(std::max<int64_t>(moment.time_s, 0));
  message.set_tokens(moment.tokens);
}

RpcAnswer answer_by_search(PlannedSearch planned) {
  v1::NeighboursReply reply;
  for (const AskedWord& word : planned.words) {
    v1::AskedWord& asked = *reply.add_words();
    asked.set_word(clean(word.word));
    asked.set_seen(word.seen);
    asked.set_weight(word.weight);
  }
  RpcAnswer answer;
  answer.finish = [reply](const ServedModel& model, const std::vector<Neighbour>& found) mutable {
    for (const Neighbour& one : found) {
      v1::Neighbour& neighbour = *reply.add_neighbours();
      neighbour.set_word(clean(model.vocabulary().word(one.slot)));
      neighbour.set_cosine(one.cosine);
      neighbour.set_count(model.vocabulary().count(one.slot));
    }
    fill(model, *reply.mutable_model());
    return reply.SerializeAsString();
  };
  answer.search = std::move(planned);
  return answer;
}

Result<RpcAnswer> ask_nearest(const ApiParts&, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::NearestRequest>(message));
  if ((request.words_size() > 0) == (request.vector_size() > 0))
    return error(Code::kInvalidArgument, "one of words and vector has to be given");
  NearestQuery query;
  for (const v1::WeightedWord& word : request.words())
    query.words.push_back({word.word(), word.has_weight() ? word.weight() : 1});
  query.vector.assign(request.vector().begin(), request.vector().end());
  query.k = or_default(request.k(), 10);
  STREAMVEC_ASSIGN_OR_RETURN(PlannedSearch planned, plan_nearest(*model, query));
  return answer_by_search(std::move(planned));
}

Result<RpcAnswer> ask_analogy(const ApiParts&, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::AnalogyRequest>(message));
  STREAMVEC_ASSIGN_OR_RETURN(PlannedSearch planned,
                             plan_analogy(*model, request.a(), request.b(), request.c(), or_default(request.k(), 10)));
  return answer_by_search(std::move(planned));
}

Result<RpcAnswer> ask_vector(const ApiParts&, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::VectorRequest>(message));
  STREAMVEC_ASSIGN_OR_RETURN(const auto answers,
                             find_vectors(*model, {request.words().begin(), request.words().end()}));
  v1::VectorReply reply;
  for (const VectorAnswer& one : answers) {
    v1::VectorReply::One& vector = *reply.add_vectors();
    vector.set_word(one.word);
    vector.set_found(one.found);
    vector.set_seen(one.seen);
    vector.mutable_values()->Assign(one.values.begin(), one.values.end());
  }
  fill(*model, *reply.mutable_model());
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_similarity(const ApiParts&, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::SimilarityRequest>(message));
  STREAMVEC_RETURN_IF_ERROR(check_range("the number of pairs", request.pairs_size(), kQuestionWordsMax));
  v1::SimilarityReply reply;
  for (const v1::SimilarityRequest::Pair& pair : request.pairs()) {
    const auto found = find_similarity(*model, pair.a(), pair.b());
    v1::SimilarityReply::One& one = *reply.add_pairs();
    one.set_a(pair.a());
    one.set_b(pair.b());
    if (found.ok()) one.set_cosine(found->cosine);
    one.set_seen(found.ok() && found->a.seen && found->b.seen);
  }
  fill(*model, *reply.mutable_model());
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_words(const ApiParts&, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::WordsRequest>(message));
  const int64_t limit = or_default(request.limit(), 20);
  STREAMVEC_RETURN_IF_ERROR(check_range("limit", limit, kWordsListedMax));
  v1::WordsReply reply;
  for (const Slot slot : model->words_with(request.prefix(), limit)) {
    v1::WordsReply::One& one = *reply.add_words();
    one.set_word(clean(model->vocabulary().word(slot)));
    one.set_count(model->vocabulary().count(slot));
  }
  fill(*model, *reply.mutable_model());
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_neighbourhood(const ApiParts& parts, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::NeighbourhoodRequest>(message));
  const int64_t k = or_default(request.k(), 10);
  STREAMVEC_RETURN_IF_ERROR(check_range("k", k, kPathNeighboursMax));
  STREAMVEC_ASSIGN_OR_RETURN(const auto path, parts.history.path(*model, request.word(), static_cast<int32_t>(k)));
  v1::NeighbourhoodReply reply;
  reply.set_word(request.word());
  for (const Station& station : path) {
    v1::NeighbourhoodReply::Station& one = *reply.add_path();
    fill(station.when, *one.mutable_when());
    one.set_count(station.count);
    one.set_cosine(station.cosine);
    one.set_overlap(station.overlap);
    for (size_t i = 0; i < station.neighbours.size(); ++i) {
      v1::Neighbour& neighbour = *one.add_neighbours();
      neighbour.set_word(clean(station.words[i]));
      neighbour.set_cosine(station.neighbours[i].cosine);
    }
  }
  fill(*model, *reply.mutable_model());
  return RpcAnswer{reply.SerializeAsString()};
}

void fill(const WordDrift& word, v1::DriftReply::Word& message) {
  message.set_word(clean(word.word));
  message.set_score(word.score);
  message.set_p(word.p);
  message.set_alert(word.alert);
  message.set_change(word.change);
  message.set_cosine(word.cosine);
  message.set_overlap(word.overlap);
  message.set_count_old(word.count_old);
  message.set_count_new(word.count_new);
  for (const std::string& one : word.neighbours_old) message.add_neighbours_old(clean(one));
  for (const std::string& one : word.neighbours_new) message.add_neighbours_new(clean(one));
}

Result<RpcAnswer> ask_drift(const ApiParts& parts, const ServedModel* model, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::DriftRequest>(message));
  const int64_t k = or_default(request.k(), 20);
  STREAMVEC_RETURN_IF_ERROR(check_range("k", k, kMovedMax));
  STREAMVEC_ASSIGN_OR_RETURN(const DriftAnswer found, parts.history.drift(*model, request.from(), request.to(), k));
  v1::DriftReply reply;
  fill(found.from, *reply.mutable_from());
  fill(found.to, *reply.mutable_to());
  reply.set_calibrated(found.report.calibrated);
  reply.set_words(found.report.words);
  reply.set_alerts(found.report.alerts);
  reply.set_usual_change(found.report.usual_change);
  for (const WordDrift& word : found.report.moved) fill(word, *reply.add_moved());
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_model(const ApiParts& parts, const ServedModel* model, const std::string& message) {
  STREAMVEC_RETURN_IF_ERROR(parsed<v1::ModelRequest>(message).status());
  const Json card = model_card(parts, *model);
  v1::ModelReply reply;
  reply.set_model(card["model"].get<std::string>());
  reply.set_words(card["words"].get<int64_t>());
  reply.set_dim(card["dim"].get<int64_t>());
  reply.set_tokens(card["tokens"].get<int64_t>());
  reply.set_step(card["step"].get<int64_t>());
  reply.set_number(card["number"].get<int64_t>());
  reply.set_served_since(card["served_since"].get<double>());
  reply.set_makes_unseen_words(card["makes_unseen_words"].get<bool>());
  reply.set_service(card["service"].get<std::string>());
  reply.set_version(card["version"].get<std::string>());
  reply.set_options_json(json_text(card["options"]));
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_health(const ApiParts& parts, const ServedModel* model, const std::string& message) {
  STREAMVEC_RETURN_IF_ERROR(parsed<v1::HealthRequest>(message).status());
  v1::HealthReply reply;
  fill(*model, *reply.mutable_model());
  reply.set_trouble(clean(parts.models.trouble()));
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_metrics(const ApiParts& parts, const ServedModel*, const std::string& message) {
  STREAMVEC_RETURN_IF_ERROR(parsed<v1::MetricsRequest>(message).status());
  v1::MetricsReply reply;
  reply.set_text(clean(parts.figures()));
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_map(const ApiParts& parts, const ServedModel*, const std::string& message) {
  STREAMVEC_RETURN_IF_ERROR(parsed<v1::MapRequest>(message).status());
  const auto frame = parts.models.map();
  if (frame == nullptr) return error(Code::kUnavailable, "no picture has been drawn yet");
  v1::MapReply reply;
  reply.set_model(frame->model_number);
  reply.set_step(frame->step);
  for (const MapPoint& point : frame->points) {
    reply.add_words(clean(point.word));
    reply.add_counts(point.count);
    reply.add_x(point.x);
    reply.add_y(point.y);
    reply.add_group(point.group);
  }
  return RpcAnswer{reply.SerializeAsString()};
}

Result<RpcAnswer> ask_progress(const ApiParts& parts, const ServedModel*, const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::ProgressRequest>(message));
  const int64_t points = or_default(request.points(), 500);
  STREAMVEC_RETURN_IF_ERROR(check_range("points", points, kHistoryPointsMax));
  v1::ProgressReply reply;
  reply.set_json(to_text(progress_so_far(parts, points)));
  return RpcAnswer{reply.SerializeAsString()};
}

constexpr RpcMethod kMethods[] = {
    {"/streamvec.v1.Query/Nearest", Role::kQuery, Lane::kCalls, ask_nearest},
    {"/streamvec.v1.Query/Analogy", Role::kQuery, Lane::kCalls, ask_analogy},
    {"/streamvec.v1.Query/Vector", Role::kQuery, Lane::kCalls, ask_vector},
    {"/streamvec.v1.Query/Similarity", Role::kQuery, Lane::kCalls, ask_similarity},
    {"/streamvec.v1.Query/Words", Role::kQuery, Lane::kCalls, ask_words},
    {"/streamvec.v1.Query/Neighbourhood", Role::kQuery, Lane::kSlow, ask_neighbourhood},
    {"/streamvec.v1.Query/Drift", Role::kQuery, Lane::kSlow, ask_drift},
    {"/streamvec.v1.Query/Model", Role::kQuery, Lane::kCalls, ask_model},
    {"/streamvec.v1.Query/Health", Role::kMetrics, Lane::kCalls, ask_health},
    {"/streamvec.v1.Query/Metrics", Role::kMetrics, Lane::kCalls, ask_metrics, false},
    {"/streamvec.v1.Query/Map", Role::kQuery, Lane::kCalls, ask_map, false},
    {"/streamvec.v1.Query/Progress", Role::kQuery, Lane::kCalls, ask_progress, false},
    {"/streamvec.v1.Query/Events", Role::kQuery, Lane::kNetwork, nullptr, false},
};

}  // namespace

std::span<const RpcMethod> rpc_methods() {
  return kMethods;
}

const RpcMethod* find_method(std::string_view name) {
  for (const RpcMethod& method : kMethods)
    if (method.name == name) return &method;
  return nullptr;
}

Result<std::vector<std::string>> wanted_kinds(const std::string& message) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto request, parsed<v1::EventsRequest>(message));
  for (const std::string& kind : request.kinds())
    if (!EventBoard::is_kind(kind)) return error(Code::kInvalidArgument, kNoSuchKind);
  return std::vector<std::string>(request.kinds().begin(), request.kinds().end());
}

std::string event_message(const BoardEvent& event) {
  v1::Event message;
  message.set_kind(event.kind);
  message.set_json(event.json);
  return message.SerializeAsString();
}

}  // namespace streamvec
