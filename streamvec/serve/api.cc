#include "streamvec/serve/api.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "streamvec/core/address.h"
#include "streamvec/core/json.h"
#include "streamvec/serve/progress_json.h"

namespace streamvec {
namespace {

double short_number(double value) {
  return std::round(value * 1e6) / 1e6;
}

Json number(double value) {
  return std::isfinite(value) ? Json(short_number(value)) : Json(nullptr);
}

Json stamp(const ServedModel& model) {
  return {{"number", model.number()}, {"step", model.snapshot().step}};
}

Json json_of(const ServedModel& model, const std::vector<Neighbour>& neighbours) {
  Json list = Json::array();
  for (const Neighbour& one : neighbours)
    list.push_back({{"word", model.vocabulary().word(one.slot)},
                    {"cosine", short_number(one.cosine)},
                    {"count", model.vocabulary().count(one.slot)}});
  return list;
}

Json json_of(const std::vector<AskedWord>& words) {
  Json list = Json::array();
  for (const AskedWord& word : words)
    list.push_back({{"word", word.word}, {"seen", word.seen}, {"weight", word.weight}});
  return list;
}

ApiAnswer answer_by_search(PlannedSearch planned) {
  ApiAnswer answer;
  answer.finish = [words = json_of(planned.words)](const ServedModel& model, const std::vector<Neighbour>& found) {
    return Json{{"words", words}, {"neighbours", json_of(model, found)}, {"model", stamp(model)}};
  };
  answer.search = std::move(planned);
  return answer;
}

Result<ApiAnswer> ask_nearest(const ApiParts&, const ServedModel* model, const CallArguments& arguments) {
  NearestQuery query;
  const int given = arguments.given("word") + arguments.given("words") + arguments.given("vector");
  if (given != 1) return error(Code::kInvalidArgument, "one of word, words and vector has to be given");
  if (arguments.given("word")) {
    STREAMVEC_ASSIGN_OR_RETURN(query.words.emplace_back().word, arguments.text("word"));
  } else if (arguments.given("words")) {
    STREAMVEC_ASSIGN_OR_RETURN(query.words, arguments.weighted_words("words"));
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(query.vector, arguments.numbers("vector"));
    if (query.vector.empty()) return error(Code::kInvalidArgument, "vector is empty");
  }
  STREAMVEC_ASSIGN_OR_RETURN(query.k, arguments.integer("k", 10, 1, kNeighboursMax));
  STREAMVEC_ASSIGN_OR_RETURN(PlannedSearch planned, plan_nearest(*model, query));
  return answer_by_search(std::move(planned));
}

Result<ApiAnswer> ask_analogy(const ApiParts&, const ServedModel* model, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string a, arguments.text("a"));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string b, arguments.text("b"));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string c, arguments.text("c"));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t k, arguments.integer("k", 10, 1, kNeighboursMax));
  STREAMVEC_ASSIGN_OR_RETURN(PlannedSearch planned, plan_analogy(*model, a, b, c, k));
  return answer_by_search(std::move(planned));
}

Result<ApiAnswer> ask_vector(const ApiParts&, const ServedModel* model, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto words, arguments.texts("word"));
  STREAMVEC_ASSIGN_OR_RETURN(const auto answers, find_vectors(*model, words));
  Json list = Json::array();
  for (const VectorAnswer& one : answers) {
    Json values = Json::array();
    for (const float value : one.values) values.push_back(value);
    list.push_back({{"word", one.word},
                    {"found", one.found},
                    {"seen", one.seen},
                    {"vector", one.found ? std::move(values) : Json(nullptr)}});
  }
  return ApiAnswer{{{"vectors", std::move(list)}, {"dim", model->dim()}, {"model", stamp(*model)}}, {}, {}};
}

Result<ApiAnswer> ask_similarity(const ApiParts&, const ServedModel* model, const CallArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (arguments.given("pairs")) {
    STREAMVEC_ASSIGN_OR_RETURN(pairs, arguments.pairs("pairs"));
    if (pairs.empty() || std::ssize(pairs) > kQuestionWordsMax)
      return error(Code::kInvalidArgument, "1 to ", kQuestionWordsMax, " pairs can be asked for at once");
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string a, arguments.text("a"));
    STREAMVEC_ASSIGN_OR_RETURN(const std::string b, arguments.text("b"));
    STREAMVEC_RETURN_IF_ERROR(
        find_similarity(*model, a, b).status());  // a single pair is an error where one is not known
    pairs.push_back({a, b});
  }
  Json list = Json::array();
  for (const auto& [a, b] : pairs) {
    const auto found = find_similarity(*model, a, b);
    list.push_back({{"a", a},
                    {"b", b},
                    {"cosine", found.ok() ? number(found->cosine) : Json(nullptr)},
                    {"seen", found.ok() && found->a.seen && found->b.seen}});
  }
  return ApiAnswer{{{"pairs", std::move(list)}, {"model", stamp(*model)}}, {}, {}};
}

Result<ApiAnswer> ask_words(const ApiParts&, const ServedModel* model, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string prefix, arguments.text_or("prefix", ""));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t limit, arguments.integer("limit", 20, 1, kWordsListedMax));
  Json list = Json::array();
  for (const Slot slot : model->words_with(prefix, limit))
    list.push_back({{"word", model->vocabulary().word(slot)}, {"count", model->vocabulary().count(slot)}});
  return ApiAnswer{{{"prefix", prefix}, {"words", std::move(list)}, {"model", stamp(*model)}}, {}, {}};
}

Json json_of(const StreamMoment& moment) {
  return {{"step", moment.step},
          {"time", moment.time_s > 0 ? Json(moment.time_s) : Json(nullptr)},
          {"tokens", moment.tokens}};
}

Result<ApiAnswer> ask_neighbourhood(const ApiParts& parts, const ServedModel* model, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string word, arguments.text("word"));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t k, arguments.integer("k", 10, 1, kPathNeighboursMax));
  STREAMVEC_ASSIGN_OR_RETURN(const auto path, parts.history.path(*model, word, static_cast<int32_t>(k)));
  Json list = Json::array();
  for (const Station& station : path) {
    const bool known = station.count > 0;
    Json neighbours = Json::array();
    for (size_t i = 0; i < station.neighbours.size(); ++i)
      neighbours.push_back({{"word", station.words[i]}, {"cosine", short_number(station.neighbours[i].cosine)}});
    Json one = json_of(station.when);
    one["count"] = station.count;
    one["cosine"] = known ? number(station.cosine) : Json(nullptr);
    one["overlap"] = known ? number(station.overlap) : Json(nullptr);
    one["neighbours"] = std::move(neighbours);
    list.push_back(std::move(one));
  }
  return ApiAnswer{{{"word", word}, {"path", std::move(list)}, {"model", stamp(*model)}}, {}, {}};
}

Json json_of(const WordDrift& word) {
  return {{"word", word.word},
          {"score", number(word.score)},
          {"p", std::isfinite(word.p) ? Json(word.p) : Json(nullptr)},
          {"alert", word.alert},
          {"change", number(word.change)},
          {"cosine", number(word.cosine)},
          {"overlap", number(word.overlap)},
          {"count_old", word.count_old},
          {"count_new", word.count_new},
          {"neighbours_old", word.neighbours_old},
          {"neighbours_new", word.neighbours_new}};
}

Result<ApiAnswer> ask_drift(const ApiParts& parts, const ServedModel* model, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t k, arguments.integer("k", 20, 1, kMovedMax));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string from, arguments.moment("from"));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string to, arguments.moment("to"));
  STREAMVEC_ASSIGN_OR_RETURN(const DriftAnswer found, parts.history.drift(*model, from, to, k));
  Json moved = Json::array();
  for (const WordDrift& word : found.report.moved) moved.push_back(json_of(word));
  return ApiAnswer{{{"from", json_of(found.from)},
                    {"to", json_of(found.to)},
                    {"calibrated", found.report.calibrated},
                    {"words", found.report.words},
                    {"alerts", found.report.alerts},
                    {"usual_change", number(found.report.usual_change)},
                    {"moved", std::move(moved)}},
                   {},
                   {}};
}

// The options that the newest checkpoint was trained with; null before there is one.
Json options_of(const std::string& directory) {
  std::string step;
  std::ifstream(directory + "/latest") >> step;
  if (step.empty() || step.find_first_not_of("0123456789") != step.npos) return nullptr;
  std::ifstream file(directory + "/" + step + "/state.json");
  const Json state = parse_ordered_json(std::string(std::istreambuf_iterator<char>(file), {}));
  const Json::json_pointer place("/state/run");
  if (!state.is_object() || !state.contains(place) || !state[place].is_object()) return nullptr;
  Json run = state[place];
  if (run.contains("sources") && run["sources"].is_array())
    for (Json& source : run["sources"])
      if (source.is_string()) source = without_credentials(source.get<std::string>());
  return run;
}

Result<ApiAnswer> ask_model(const ApiParts& parts, const ServedModel* model, const CallArguments&) {
  return ApiAnswer{model_card(parts, *model), {}, {}};
}

Result<ApiAnswer> ask_progress(const ApiParts& parts, const ServedModel*, const CallArguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t points, arguments.integer("points", 500, 1, kHistoryPointsMax));
  return ApiAnswer{progress_so_far(parts, points), {}, {}};
}

#define MODEL_STAMP R"("model":{"number":"integer","step":"integer"})"
#define NEIGHBOURS                                                      \
  R"({"words":[{"word":"string","seen":"boolean","weight":"number"}],)" \
  R"("neighbours":[{"word":"string","cosine":"number","count":"integer"}],)" MODEL_STAMP "}"
#define MOMENT R"({"step":"integer","time":"integer?","tokens":"integer"})"

const std::vector<ApiCall>& table() {
  static const std::vector<ApiCall> kCalls = {
      {"/api/nearest",
       "GET POST",
       Role::kQuery,
       Lane::kCalls,
       "The words nearest to a word, to a weighted sum of words, or to a vector; the words asked for are left out",
       {{"word", "string", "one word; words the model has never seen work where it makes vectors of spellings"},
        {"words", "word[]", "several, each with a weight (in an address word:weight, repeated)"},
        {"vector", "number[]", "as many values as the model has", false, true},
        {"k", "integer", "how many, 1 to 1000; 10 unless given"}},
       NEIGHBOURS,
       "application/json",
       ask_nearest},
      {"/api/analogy",
       "GET POST",
       Role::kQuery,
       Lane::kCalls,
       "a is to b as c is to ...: nearest to b - a + c, the three left out",
       {{"a", "string", "", true},
        {"b", "string", "", true},
        {"c", "string", "", true},
        {"k", "integer", "how many, 1 to 1000; 10 unless given"}},
       NEIGHBOURS,
       "application/json",
       ask_analogy},
      {"/api/vector",
       "GET POST",
       Role::kQuery,
       Lane::kCalls,
       "Vectors of words; seen is false where one was made from the spelling, found where there is one",
       {{"word", "string[]", "one or more, at most 1000", true}},
       R"({"vectors":[{"word":"string","found":"boolean","seen":"boolean","vector":"number[]?"}],"dim":"integer",)" MODEL_STAMP
       "}",
       "application/json",
       ask_vector},
      {"/api/similarity",
       "GET POST",
       Role::kQuery,
       Lane::kCalls,
       "Cosines of pairs of words",
       {{"a", "string", "with b: one pair"},
        {"b", "string", ""},
        {"pairs", "pair[]", "many at once; a pair with an unknown word has no cosine", false, true}},
       R"({"pairs":[{"a":"string","b":"string","cosine":"number?","seen":"boolean"}],)" MODEL_STAMP "}",
       "application/json",
       ask_similarity},
      {"/api/words",
       "GET POST",
       Role::kQuery,
       Lane::kCalls,
       "Words that begin with a prefix, the most frequent first",
       {{"prefix", "string", "as written, else case-folded; none: the most frequent words of all"},
        {"limit", "integer", "how many, 1 to 1000; 20 unless given"}},
       R"({"prefix":"string","words":[{"word":"string","count":"integer"}],)" MODEL_STAMP "}",
       "application/json",
       ask_words},
      {"/api/neighbourhood",
       "GET POST",
       Role::kQuery,
       Lane::kSlow,
       "A word's neighbours at every moment that the stream's history has, oldest first, the served model last",
       {{"word", "string", "", true}, {"k", "integer", "neighbours of each moment, 1 to 100; 10 unless given"}},
       R"({"word":"string","path":[{"step":"integer","time":"integer?","tokens":"integer","count":"integer",)"
       R"("cosine":"number?","overlap":"number?","neighbours":[{"word":"string","cosine":"number"}]}],)" MODEL_STAMP
       "}",
       "application/json",
       ask_neighbourhood},
      {"/api/drift",
       "GET POST",
       Role::kQuery,
       Lane::kSlow,
       "Words whose meaning moved between two moments, greatest score first",
       {{"from", "string", "a step or a time; the first with a quarter of the text unless given"},
        {"to", "string", "likewise; the newest unless given"},
        {"k", "integer", "how many, 1 to 1000; 20 unless given"}},
       R"({"from":)" MOMENT R"(,"to":)" MOMENT
       R"(,"calibrated":"boolean","words":"integer","alerts":"integer","usual_change":"number?",)"
       R"("moved":[{"word":"string","score":"number?","p":"number?","alert":"boolean","change":"number?","cosine":"number?",)"
       R"("overlap":"number?","count_old":"integer","count_new":"integer","neighbours_old":["string"],)"
       R"("neighbours_new":["string"]}]})",
       "application/json",
       ask_drift},
      {"/api/model",
       "GET",
       Role::kQuery,
       Lane::kCalls,
       "The model card: what is served, how it was trained",
       {},
       R"({"model":"string","words":"integer","dim":"integer","tokens":"integer","step":"integer","number":"integer",)"
       R"("served_since":"number","makes_unseen_words":"boolean","search":"string","service":"string","version":"string","options":"any"})",
       "application/json",
       ask_model},
      {"/api/progress",
       "GET",
       Role::kQuery,
       Lane::kCalls,
       "What training has told so far, thinned with age: the events progress, metrics and alert",
       {{"points", "integer", "of each kind at most, 1 to 2000; 500 unless given"}},
       R"({"service":"string","progress":["any"],"metrics":["any"],"alerts":["any"]})",
       "application/json",
       ask_progress,
       false},
      {"/api/map",
       "GET",
       Role::kQuery,
       Lane::kNetwork,
       "The newest picture of the vocabulary: columns of words, counts, places in the plane and groups",
       {},
       R"({"model":"integer","step":"integer","words":["string"],"counts":["integer"],"x":["number"],"y":["number"],)"
       R"("group":["integer"]})"},
      {"/api/events",
       "GET",
       Role::kQuery,
       Lane::kNetwork,
       "Server-sent events while training goes on and models come",
       {{"kind", "string[]", "which: progress, metrics, alert, model, map, end; all but map unless given"}},
       "",
       "text/event-stream"},
      {"/api/health",
       "GET",
       Role::kMetrics,
       Lane::kNetwork,
       "200 once a model is served, 503 before",
       {},
       R"({"status":"string","model":"any","trouble":"string?"})"},
      {"/api/openapi.json", "GET", Role::kMetrics, Lane::kNetwork, "This document", {}, R"("any")"},
      {"/api/login",
       "POST",
       Role::kNobody,
       Lane::kNetwork,
       "Takes a token and keeps it in a cookie, for browsers",
       {{"token", "string", "", true, true}},
       R"({"role":"string"})"},
      {"/api/logout", "POST", Role::kNobody, Lane::kNetwork, "Forgets the cookie", {}, R"({"role":"string"})"},
      {"/metrics",
       "GET",
       Role::kMetrics,
       Lane::kNetwork,
       "Figures for Prometheus",
       {},
       "",
       "text/plain; version=0.0.4; charset=utf-8"},
  };
  return kCalls;
}

}  // namespace

Json model_card(const ApiParts& parts, const ServedModel& model) {
  const Snapshot& snapshot = model.snapshot();
  return {{"model", snapshot.model},
          {"words", snapshot.vocabulary.size()},
          {"dim", snapshot.dim()},
          {"tokens", snapshot.vocabulary.tokens()},
          {"step", snapshot.step},
          {"number", model.number()},
          {"served_since", number(model.time_s())},
          {"makes_unseen_words", snapshot.generator != nullptr},
          {"search", model.is_exact() ? "exact" : "hnsw"},
          {"service", parts.kind},
          {"version", parts.version},
          {"options", options_of(parts.directory)}};
}

Json progress_so_far(const ApiParts& parts, int64_t points) {
  return {{"service", parts.kind},
          {"progress", parts.events.history("progress", points)},
          {"metrics", parts.events.history("metrics", points)},
          {"alerts", parts.events.history("alert", points)}};
}

std::span<const ApiCall> api_calls() {
  return table();
}

const ApiCall* find_call(std::string_view path) {
  for (const ApiCall& call : table())
    if (call.path == path) return &call;
  return nullptr;
}

bool allows(const ApiCall& call, std::string_view method) {
  const std::string methods = " " + std::string(call.methods) + " ";
  return methods.find(" " + std::string(method == "HEAD" ? "GET" : method) + " ") != methods.npos;
}

std::string to_text(const Json& json) {
  return json_text(json) + "\n";
}

}  // namespace streamvec
