// streamvec eval: how good a model is.
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "apps/streamvec/texts.h"
#include "streamvec/eval/report.h"
#include "streamvec/source/location.h"

namespace streamvec::cli {
namespace {

std::string figure(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

void row(std::ostream& out, const std::string& name, std::initializer_list<std::string> cells) {
  out << std::left << std::setw(34) << name << std::right;
  for (const std::string& cell : cells) out << std::setw(12) << cell;
  out << "\n";
}

void show_similarity(std::ostream& out, const std::vector<SimilarityResult>& results) {
  if (results.empty()) return;
  row(out, "similarity", {"spearman", "pairs", "covered"});
  for (const SimilarityResult& result : results)
    row(out, "  " + result.set,
        {figure(result.spearman), std::to_string(result.pairs), std::to_string(result.covered)});
}

void show_score(std::ostream& out, const std::string& indent, const AnalogyScore& score) {
  row(out, indent + score.name,
      {figure(score.cos_add_accuracy()), figure(score.cos_mul_accuracy()), std::to_string(score.questions),
       std::to_string(score.covered)});
}

void show_analogy(std::ostream& out, const std::vector<AnalogyResult>& results) {
  if (results.empty()) return;
  row(out, "analogy", {"3CosAdd", "3CosMul", "questions", "covered"});
  for (const AnalogyResult& result : results) {
    show_score(out, "  ", result.total);
    for (const AnalogyScore& section : result.sections) show_score(out, "    ", section);
  }
}

void show_figures(std::ostream& out, const std::string& name, const PipFigures& figures) {
  row(out, "  " + name,
      {figure(figures.relative), figure(figures.scale_free), figure(figures.cka), figure(figures.neighbour_overlap),
       figure(figures.mean_square)});
}

void show_pip(std::ostream& out, const PipReport& pip) {
  row(out, "PIP against SPPMI, oracle of dim " + std::to_string(pip.oracle_dim),
      {"relative", "scale-free", "CKA", "overlap@10", "2018 form"});
  show_figures(out, "this model", pip.model);
  for (const auto& [name, figures] : pip.references) show_figures(out, name, figures);
}

std::string table_of(const EvalReport& report, const Snapshot& snapshot) {
  std::ostringstream out;
  out << snapshot.model << ", " << snapshot.vocabulary.size() << " words, " << snapshot.dim() << " dimensions\n";
  show_similarity(out, report.similarity);
  show_analogy(out, report.analogy);
  if (report.pip) show_pip(out, *report.pip);
  if (report.held_out) row(out, "held-out loss a pair", {figure(report.held_out->loss)});
  if (report.choose_dim)
    row(out, "dimension the text supports",
        {std::to_string(report.choose_dim->dim) + " (" + std::to_string(report.choose_dim->dim_low) + " to " +
         std::to_string(report.choose_dim->dim_high) + (report.choose_dim->at_limit ? " or more)" : ")")});
  return out.str();
}

Status measure_sets(const Arguments& arguments, const Snapshot& snapshot, Products& products, EvalReport& report) {
  for (const std::string& path : arguments.list("similarity")) {
    STREAMVEC_ASSIGN_OR_RETURN(const SimilaritySet set, read_similarity_set(path));
    report.similarity.push_back(measure_similarity(snapshot, set));
  }
  for (const std::string& path : arguments.list("analogy")) {
    STREAMVEC_ASSIGN_OR_RETURN(const AnalogySet set, read_analogy_set(path));
    STREAMVEC_ASSIGN_OR_RETURN(AnalogyResult result,
                               measure_analogy(snapshot, set, {.vocab = arguments.integer("analogy-vocab")}, products));
    report.analogy.push_back(std::move(result));
  }
  return {};
}

Status measure_pip_of(const Snapshot& snapshot, const SentenceStream& stream, const PairOptions& pairs,
                      Products& products, EvalReport& report) {
  OracleOptions options;
  options.counts.pairs = pairs;
  options.dim = snapshot.dim();
  STREAMVEC_ASSIGN_OR_RETURN(const Oracle oracle, make_oracle(stream, snapshot.vocabulary, options));
  STREAMVEC_ASSIGN_OR_RETURN(report.pip, measure_pip(snapshot.input, oracle, products));
  return {};
}

// A model without context vectors (imported, glove) has no loss; what else was asked of the text does not need one.
Status measure_loss(const Snapshot& snapshot, const SentenceStream& stream, const PairOptions& pairs, bool alone,
                    EvalReport& report) {
  const auto held_out = measure_held_out(snapshot, stream, pairs);
  if (held_out.ok()) {
    report.held_out = *held_out;
    return {};
  }
  if (alone || held_out.status().code() != Code::kFailedPrecondition) return held_out.status();
  std::cerr << "note: no held-out loss: " << held_out.status().message() << std::endl;
  return {};
}

// The text may be but the last of several, and a path another file's by now.
void name_texts(const std::vector<std::string>& paths) {
  std::cerr << "note: measured against ";
  for (size_t i = 0; i < paths.size(); ++i) std::cerr << (i == 0 ? "" : ", ") << presentable(paths[i]);
  std::cerr << ", what it was last trained on; --text names others" << std::endl;
}

Status measure_text(const Arguments& arguments, const Snapshot& snapshot, Products& products, EvalReport& report) {
  const bool pip = arguments.flag("pip"), choose = arguments.flag("choose-dim"), loss = arguments.given("text");
  if (!pip && !choose && !loss) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const TrainedOn trained, trained_on(arguments.words[0]));
  STREAMVEC_ASSIGN_OR_RETURN(const auto paths,
                             loss ? Result(arguments.list("text")) : sources_still_there(trained, arguments.words[0]));
  if (!loss) name_texts(paths);
  const SentenceStream stream = sentences_of(paths, trained.tokenizer, snapshot.vocabulary);
  if (loss) STREAMVEC_RETURN_IF_ERROR(measure_loss(snapshot, stream, trained.pairs, !pip && !choose, report));
  if (pip) STREAMVEC_RETURN_IF_ERROR(measure_pip_of(snapshot, stream, trained.pairs, products, report));
  if (!choose) return {};
  ChooseDimOptions options;
  options.counts.pairs = trained.pairs;
  STREAMVEC_ASSIGN_OR_RETURN(report.choose_dim, choose_dim(stream, snapshot.vocabulary, options));
  return {};
}

}  // namespace

Result<int> run_eval(const Arguments& arguments) {
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot snapshot, open_model(arguments.words[0]));
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<Products> products, make_products(arguments.text("device")));
  EvalReport report;
  STREAMVEC_RETURN_IF_ERROR(measure_sets(arguments, snapshot, *products, report));
  STREAMVEC_RETURN_IF_ERROR(measure_text(arguments, snapshot, *products, report));
  Json json = to_json(report);
  json["model"] = snapshot.model;
  json["vocab"] = snapshot.vocabulary.size();
  json["dim"] = snapshot.dim();
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json) : print(table_of(report, snapshot)));
  return 0;
}

}  // namespace streamvec::cli
