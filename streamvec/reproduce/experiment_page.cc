#include "streamvec/reproduce/experiment_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "streamvec/report/markup.h"
#include "streamvec/report/page.h"
#include "streamvec/report/plot.h"

namespace streamvec {
namespace {

constexpr double kNotShown = std::numeric_limits<double>::quiet_NaN();

int colour_of(const RowPlan& plan) {
  return plan.model == "rbsg" ? 4 : static_cast<int>(plan.setting);
}

std::string batch_text(int64_t batch) {
  return batch > 0 ? number_text(static_cast<double>(batch), 6) : "own";
}

// "200, 8,192, cluster, synchronous"
std::string short_name(const RowPlan& plan) {
  return (plan.model == "rbsg" ? "rbsg " : "") + std::to_string(plan.dim) + ", " + batch_text(plan.batch) + ", " +
         plan.setting_text();
}

bool measured(const RowResult& row) {
  return !row.points.empty();
}

std::string arm_text(Arm arm) {
  return arm == Arm::kPublished ? "as published" : "sound";
}

std::string best_similarity(const RowResult& row) {
  std::string text;
  for (const SimilarityResult& result : row.similarity)
    text += (text.empty() ? "" : " / ") + number_text(result.spearman, 3);
  return text.empty() ? "–" : text;
}

Cell pip_cell(double value, double zero) {
  return {number_text(value, 4), value > zero ? "bad" : ""};
}

// What an all-zero matrix scores in the form of 2018: the same for every dim but for rounding.
double zero_of(const ExperimentReport& report, int64_t dim) {
  for (const auto& [each, references] : report.references)
    for (const auto& [name, figures] : references)
      if (each == dim && name == "zero") return figures.mean_square;
  return std::numeric_limits<double>::infinity();
}

std::vector<Cell> cells_of(const RowResult& row, double zero) {
  std::vector<Cell> cells = {arm_text(row.plan.arm), row.plan.model + " " + std::to_string(row.plan.dim),
                             batch_text(row.plan.batch), row.plan.setting_text()};
  const auto old = figures_2018(row.plan);
  cells.push_back({old ? number_text(old->seconds, 4) : "–", "old"});
  cells.push_back({old ? number_text(old->pairs_per_s, 6) : "–", "old"});
  cells.push_back({!old ? "–" : !old->converged ? "did not converge" : number_text(old->pip, 4), "old"});
  if (!measured(row)) {
    cells.push_back({row.failure.empty() ? "not run" : row.failure, "bad"});
    return cells;
  }
  const RowPoint& last = row.points.back();
  cells.push_back(number_text(row.seconds_per_epoch(), 3));
  cells.push_back(row.seconds_on_their_network > 0 ? number_text(row.seconds_on_their_network, 3) : "–");
  cells.push_back(number_text(row.pairs_per_s, 4));
  cells.push_back(pip_cell(row.best_mean_square(), zero));
  cells.push_back(number_text(last.pip.relative, 4));
  cells.push_back(number_text(last.pip.cka, 3));
  cells.push_back(number_text(last.pip.neighbour_overlap, 2));
  cells.push_back(best_similarity(row));
  cells.push_back(row.wire_bytes_per_pair > 0 ? number_text(row.wire_bytes_per_pair, 3) : "–");
  const std::string epochs = number_text(static_cast<double>(last.epochs), 6) + (row.stopped ? ", stopped" : "");
  cells.push_back(row.failure.empty() ? Cell(epochs) : Cell(epochs + ", then " + row.failure, "bad"));
  return cells;
}

PageTable rows_table(const ExperimentReport& report) {
  PageTable table;
  table.texts = 4;
  table.head = {
      "how",        "model, dim",   "batch",   "setting",          "2018: s an epoch", "2018: pairs/s", "2018: PIP",
      "s an epoch", "on their net", "pairs/s", "PIP, 2018's form", "relative PIP",     "CKA",           "overlap@10",
      "similarity", "bytes a pair", "epochs"};
  for (const RowResult& row : report.rows) table.rows.push_back(cells_of(row, zero_of(report, row.plan.dim)));
  return table;
}

// Bars of every row that has `value`, and of 2018 beside it.
BarPlot bars_of(const ExperimentReport& report, const std::string& title, const std::string& unit,
                const std::function<double(const RowResult&)>& value,
                const std::function<double(const Figures2018&)>& old) {
  BarPlot plot{title, unit, true, {}, {{"2018", 7}, {"as published, here", 3}, {"sound", 2}}};
  std::vector<const RowResult*> rows;
  for (const RowResult& row : report.rows)
    if (measured(row)) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const RowResult* a, const RowResult* b) {
    const auto key = [](const RowPlan& plan) {
      return std::tuple(plan.model == "rbsg", plan.dim, plan.batch == 0, plan.batch, plan.setting);
    };
    return key(a->plan) < key(b->plan);
  });
  std::string last;
  for (const RowResult* row : rows) {
    const std::string label = short_name(row->plan);
    if (const auto figures = figures_2018(row->plan); old && figures && label != last)
      plot.bars.push_back({label, old(*figures), 7, figures->converged ? "" : "(did not converge)"});
    last = label;
    if (const double drawn = value(*row); std::isfinite(drawn))
      plot.bars.push_back({label, drawn, row->plan.arm == Arm::kPublished ? 3 : 2});
  }
  return plot;
}

LinePlot curves_of(const ExperimentReport& report, int64_t dim, Arm arm, bool in_2018_form) {
  LinePlot plot;
  plot.title = std::string(in_2018_form ? "PIP in the form of 2018" : "Relative PIP") + ", dim " + std::to_string(dim) +
               ", " + arm_text(arm);
  plot.x_label = "epochs";
  plot.y_label = in_2018_form ? "mean (SPPMI - EE')², less is nearer" : "0 the oracle, 1 zeros";
  plot.logarithmic_x = true;
  plot.logarithmic_y = in_2018_form;
  for (const RowResult& row : report.rows) {
    if (row.plan.dim != dim || row.plan.arm != arm || !measured(row)) continue;
    Series series{(row.plan.model == "rbsg" ? "rbsg, " : batch_text(row.plan.batch) + ", ") + row.plan.setting_text(),
                  {},
                  colour_of(row.plan),
                  row.plan.batch != 1024};
    for (const RowPoint& point : row.points)
      series.points.emplace_back(static_cast<double>(point.epochs),
                                 in_2018_form ? point.pip.mean_square : point.pip.relative);
    plot.series.push_back(std::move(series));
  }
  if (plot.series.empty()) return plot;
  if (in_2018_form && std::isfinite(zero_of(report, dim))) plot.levels.push_back({"all zeros", zero_of(report, dim)});
  return plot;
}

void add_curves(const ExperimentReport& report, Page& page) {
  for (const int64_t dim : {int64_t{50}, int64_t{200}})
    for (const bool in_2018_form : {true, false})
      for (const Arm arm : {Arm::kPublished, Arm::kSound})
        if (const LinePlot plot = curves_of(report, dim, arm, in_2018_form); !plot.series.empty())
          page.figure(svg_of(plot));
}

void add_references(const ExperimentReport& report, Page& page) {
  PageTable table{{"dim", "vectors", "PIP, 2018's form", "relative PIP", "CKA", "overlap@10"}, {}, 2};
  for (const auto& [dim, references] : report.references)
    for (const auto& [name, figures] : references)
      table.rows.push_back({std::to_string(dim), name, number_text(figures.mean_square, 4),
                            number_text(figures.relative, 4), number_text(figures.cka, 3),
                            number_text(figures.neighbour_overlap, 2)});
  if (!table.rows.empty()) page.table(table);
}

void add_similarity(const ExperimentReport& report, Page& page) {
  BarPlot plot{"Word similarity", "Spearman's rank correlation", false, {}, {{"as published, here", 3}, {"sound", 2}}};
  for (const RowResult& row : report.rows)
    for (const SimilarityResult& result : row.similarity)
      plot.bars.push_back({short_name(row.plan) + ", " + result.set, result.spearman,
                           row.plan.arm == Arm::kPublished ? 3 : 2, "(" + std::to_string(result.covered) + " pairs)"});
  if (!plot.bars.empty()) page.figure(svg_of(plot));
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json row_json(const RowResult& row) {
  using Json = nlohmann::ordered_json;
  const RowPlan& plan = row.plan;
  const bool known = measured(row);
  Json json = {
      {"name", plan.name()},
      {"arm", plan.arm == Arm::kPublished ? "published" : "sound"},
      {"model", plan.model},
      {"setting", plan.setting_text()},
      {"dim", plan.dim},
      {"batch", plan.batch > 0 ? Json(plan.batch) : Json()},
      {"command", row.command},
      {"epochs", known ? Json(row.points.back().epochs) : Json()},
      {"pairs", number(known ? row.pairs : kNotShown)},
      {"pairs_per_s", number(known ? row.pairs_per_s : kNotShown)},
      {"seconds_per_epoch", number(known ? row.seconds_per_epoch() : kNotShown)},
      {"wire_bytes_per_pair", number(known ? row.wire_bytes_per_pair : kNotShown)},
      {"seconds_on_their_network", number(row.seconds_on_their_network > 0 ? row.seconds_on_their_network : kNotShown)},
      {"kernel", row.kernel},
      {"loss", number(known ? row.points.back().loss : kNotShown)},
      {"pip", Json()},
      {"points", Json::array()},
      {"similarity", Json::array()},
      {"published", Json()},
      {"stopped", row.stopped},
      {"failure", row.failure.empty() ? Json() : Json(row.failure)}};
  if (known) {
    const PipFigures& pip = row.points.back().pip;
    json["pip"] = {{"relative", number(pip.relative)},
                   {"cka", number(pip.cka)},
                   {"neighbour_overlap", number(pip.neighbour_overlap)},
                   {"mean_square", number(pip.mean_square)},
                   {"best_mean_square", number(row.best_mean_square())}};
  }
  for (const RowPoint& point : row.points)
    json["points"].push_back({{"epochs", point.epochs},
                              {"relative", number(point.pip.relative)},
                              {"cka", number(point.pip.cka)},
                              {"mean_square", number(point.pip.mean_square)},
                              {"loss", number(point.loss)}});
  for (const SimilarityResult& result : row.similarity)
    json["similarity"].push_back(
        {{"set", result.set}, {"spearman", number(result.spearman)}, {"covered", result.covered}});
  if (const auto old = figures_2018(plan))
    json["published"] = {{"seconds", old->seconds},
                         {"pairs_per_s", old->pairs_per_s},
                         {"pip", number(old->pip)},
                         {"converged", old->converged}};
  return json;
}

const std::vector<std::string>& faults() {
  static const std::vector<std::string> kFaults = {
      "Both tables began at N(0, 1). The PIP of 2018, mean((SPPMI - EE')²) over the whole vocabulary, then measures "
      "what "
      "is left of that noise: an all-zero matrix scores better than every figure that was published.",
      "No node was sent the first one's weights and no seed was set: the nodes of a cluster moved different weights "
      "along "
      "one shared slope.",
      "\"Asynchronous\" began an all-reduce, forgot it and divided at once: a race. Here the race is between whole "
      "buffers, under a lock.",
      "Every batch sent the dense slope of both tables, whatever it had touched.",
      "Subsampling removed frequent words from the whole text, or kept them everywhere.",
      "SPPMI had token counts where pair counts belong.",
      "The character model's rows were measured in reversed order within each batch of words."};
  return kFaults;
}

}  // namespace

std::string page_of(const ExperimentReport& report) {
  Page page("The experiment of 2018, run again");
  page.paragraph(
      "In December 2018 a course project at Seoul National University trained word vectors on four machines and found "
      "them slower than one, and worse. This page runs its experiment on this machine: as it was published, with its "
      "faults (if that was asked for), and soundly. Figures of 2018 stand beside ours in grey. Seconds are those of an "
      "epoch of 3.349 million pairs, as the one of 2018 was.");
  page.facts(report.facts);
  page.heading("All rows");
  page.paragraph(
      "PIP in the form of 2018 is the best over the epochs, as it was reported then; red is worse than an all-zero "
      "matrix. Relative PIP (0 the oracle, 1 zeros), CKA (1 the oracle's shape) and overlap@10 (the share of the ten "
      "nearest neighbours that are the oracle's) are those after the last epoch. \"On their net\" is what an epoch "
      "would "
      "have taken if every step had waited for 2018's network, 28.8 MB/s.");
  page.table(rows_table(report));
  page.heading("Time");
  const auto seconds = [](const RowResult& row) { return row.seconds_per_epoch(); };
  page.figure(svg_of(bars_of(report, "Time of an epoch (3.349 M pairs)", "seconds", seconds,
                             [](const Figures2018& old) { return old.seconds; })));
  page.figure(svg_of(bars_of(
      report, "Speed", "pairs a second", [](const RowResult& row) { return row.pairs_per_s; },
      [](const Figures2018& old) { return old.pairs_per_s; })));
  page.heading("Quality while it learns");
  add_curves(report, page);
  add_similarity(report, page);
  page.paragraph("What vectors get that have learnt nothing, and how far the oracles of the text's two halves agree:");
  add_references(report, page);
  page.heading("Bytes on the wire");
  page.figure(svg_of(bars_of(
      report, "Bytes that all nodes sent, for each pair trained", "bytes a pair",
      [](const RowResult& row) { return row.wire_bytes_per_pair > 0 ? row.wire_bytes_per_pair : kNotShown; },
      nullptr)));
  page.heading("What was wrong in 2018");
  page.list(faults());
  page.heading("How it was measured");
  page.list(report.notes);
  page.heading("What could not be run here");
  page.list(report.not_run.empty() ? std::vector<std::string>{"Nothing was left out."} : report.not_run);
  page.heading("The command of every row");
  std::string commands;
  for (const RowResult& row : report.rows) commands += "# " + row.plan.name() + "\n" + row.command + "\n";
  page.code(commands);
  return page.html();
}

nlohmann::ordered_json to_json(const ExperimentReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"facts", Json::object()},
               {"rows", Json::array()},
               {"references", Json::object()},
               {"notes", report.notes},
               {"not_run", report.not_run}};
  for (const auto& [name, what] : report.facts) json["facts"][name] = what;
  for (const RowResult& row : report.rows) json["rows"].push_back(row_json(row));
  for (const auto& [dim, references] : report.references)
    for (const auto& [name, figures] : references)
      json["references"][std::to_string(dim)][name] = {{"relative", number(figures.relative)},
                                                       {"cka", number(figures.cka)},
                                                       {"mean_square", number(figures.mean_square)}};
  return json;
}

}  // namespace streamvec
