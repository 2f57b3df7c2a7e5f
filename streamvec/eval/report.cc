#include "streamvec/eval/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json json_of(const SimilarityResult& result) {
  return {
      {"set", result.set}, {"spearman", number(result.spearman)}, {"pairs", result.pairs}, {"covered", result.covered}};
}

Json json_of(const AnalogyScore& score, const char* name_key) {
  return {{name_key, score.name},
          {"accuracy", number(score.cos_add_accuracy())},
          {"questions", score.questions},
          {"covered", score.covered},
          {"cosmul_accuracy", number(score.cos_mul_accuracy())}};
}

Json json_of(const AnalogyResult& result) {
  Json json = json_of(result.total, "set");
  json["sections"] = Json::array();
  for (const AnalogyScore& section : result.sections) json["sections"].push_back(json_of(section, "section"));
  return json;
}

Json json_of(const PipFigures& figures) {
  return {{"relative", number(figures.relative)},
          {"scale", number(figures.scale)},
          {"relative_unscaled", number(figures.relative_unscaled)},
          {"mean_square", number(figures.mean_square)},
          {"cka", number(figures.cka)},
          {"scale_free", number(figures.scale_free)},
          {"neighbour_overlap", number(figures.neighbour_overlap)},
          {"norm", number(figures.norm)}};
}

Json json_of(const PipReport& report) {
  Json json = json_of(report.model);
  json["oracle_dim"] = report.oracle_dim;
  json["oracle_norm"] = number(report.oracle_norm);
  json["references"] = Json::object();
  for (const auto& [name, figures] : report.references) json["references"][name] = json_of(figures);
  return json;
}

Json json_of(const DimChoice& choice) {
  Json losses = Json::array();
  for (const double loss : choice.loss) losses.push_back(number(loss));
  return {{"dim", choice.dim},           {"low", choice.dim_low},         {"high", choice.dim_high},
          {"at_limit", choice.at_limit}, {"noise", number(choice.noise)}, {"loss", std::move(losses)}};
}

}  // namespace

nlohmann::ordered_json to_json(const EvalReport& report) {
  Json json = {{"similarity", Json::array()}, {"analogy", Json::array()}, {"pip", nullptr}, {"loss", nullptr}};
  for (const SimilarityResult& result : report.similarity) json["similarity"].push_back(json_of(result));
  for (const AnalogyResult& result : report.analogy) json["analogy"].push_back(json_of(result));
  if (report.pip) json["pip"] = json_of(*report.pip);
  if (report.held_out) json["loss"] = number(report.held_out->loss);
  if (report.choose_dim) json["choose_dim"] = json_of(*report.choose_dim);
  return json;
}

}  // namespace streamvec
