// streamvec drift: words whose meaning moved between two moments of a stream, or the way of single words through all.
#include "streamvec/eval/drift.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>

#include "apps/streamvec/commands.h"
#include "apps/streamvec/models.h"
#include "apps/streamvec/output.h"
#include "streamvec/eval/moments.h"

namespace streamvec::cli {
namespace {

constexpr size_t kShownInLines = 6;  // neighbours, so that a line fits most terminals

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "note: passed over: " << note << "\n";
}

Result<Snapshot> load(const Moment& moment, const std::string& directory) {
  return moment.entry ? History::load(*moment.entry) : open_model(directory);
}

Status check_history(const std::string& directory) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, History(directory).list());
  if (!entries.empty()) return {};
  return error(
      Code::kFailedPrecondition, directory,
      " has no history to compare it with; only streams keep one: try train --stream, and --snapshot-every with "
      "fewer tokens");
}

Result<MomentRange> find_range(const std::vector<Moment>& moments, const Arguments& arguments) {
  MomentRange range{0, moments.size() - 1};
  if (arguments.given("to")) {
    STREAMVEC_ASSIGN_OR_RETURN(range.to, find_moment(moments, "--to", arguments.text("to")));
  }
  if (arguments.words.size() == 1) range.from = first_settled(moments, range.to);  // a word's path begins at the first
  if (arguments.given("from")) {
    STREAMVEC_ASSIGN_OR_RETURN(range.from, find_moment(moments, "--from", arguments.text("from")));
  }
  STREAMVEC_RETURN_IF_ERROR(check_range(moments, range, "--from and --to"));
  return range;
}

// "step 120 (2024-05-01)".
std::string text_of(const StreamMoment& moment) {
  std::string text = "step " + std::to_string(moment.step);
  const std::time_t seconds = moment.time_s;
  std::tm date;
  char written[32];
  if (moment.time_s > 0 && ::gmtime_r(&seconds, &date) != nullptr &&
      std::strftime(written, sizeof written, " (%Y-%m-%d)", &date) > 0)
    text += written;
  return text;
}

Json json_of(const StreamMoment& moment) {
  return {{"step", moment.step},
          {"time", moment.time_s > 0 ? Json(moment.time_s) : Json(nullptr)},
          {"tokens", moment.tokens}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kShownInLines); ++i) text += (i == 0 ? "" : " ") + words[i];
  return text;
}

Json json_of(const WordDrift& word) {
  return {{"word", word.word},
          {"score", rounded(word.score)},
          {"p", rounded(word.p)},
          {"alert", word.alert},
          {"change", rounded(word.change)},
          {"cosine", rounded(word.cosine)},
          {"overlap", rounded(word.overlap)},
          {"count_old", word.count_old},
          {"count_new", word.count_new},
          {"neighbours_old", word.neighbours_old},
          {"neighbours_new", word.neighbours_new}};
}

Json json_of(const DriftReport& report, const StreamMoment& from, const StreamMoment& to) {
  Json moved = Json::array();
  for (const WordDrift& word : report.moved) moved.push_back(json_of(word));
  return {{"from", json_of(from)},    {"to", json_of(to)},       {"calibrated", report.calibrated},
          {"words", report.words},    {"alerts", report.alerts}, {"usual_change", rounded(report.usual_change)},
          {"moved", std::move(moved)}};
}

std::string lines_of(const DriftReport& report, const StreamMoment& from, const StreamMoment& to) {
  std::string lines = text_of(from) + " to " + text_of(to) + ": " + std::to_string(report.words) + " words compared, " +
                      std::to_string(report.alerts) + " moved beyond chance" +
                      (report.calibrated ? "" : " (judged by the changes alone: there are no half-streams)") + "\n";
  lines += "  score        p  cosine  overlap   count then   now\n";
  for (const WordDrift& word : report.moved) {
    char figures[128];
    std::snprintf(figures, sizeof figures, "%c %5.2f %8.1e  %6.3f  %7.2f  %11lld %5lld  ", word.alert ? '*' : ' ',
                  word.score, word.p, word.cosine, word.overlap, static_cast<long long>(word.count_old),
                  static_cast<long long>(word.count_new));
    lines += figures + word.word + ": " + joined(word.neighbours_old) + " -> " + joined(word.neighbours_new) + "\n";
  }
  return lines;
}

Result<int> show_moved(const Arguments& arguments, const std::vector<Moment>& moments, const MomentRange& range) {
  const std::string& directory = arguments.words[0];
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot then, load(moments[range.from], directory));
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot now, load(moments[range.to], directory));
  const StreamMoment &from = moments[range.from].when, &to = moments[range.to].when;
  std::vector<std::string> notes;
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, History(directory).load_halves(from.step, to.step, &notes));
  print_notes(notes);
  StreamState old_state{then}, new_state{now};
  if (halves) {
    old_state.half_a = &halves->old_a, old_state.half_b = &halves->old_b;
    new_state.half_a = &halves->new_a, new_state.half_b = &halves->new_b;
  }
  DriftOptions options;
  options.listed_max = arguments.integer("k");
  STREAMVEC_ASSIGN_OR_RETURN(const DriftReport report, find_drift(old_state, new_state, options));
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json_of(report, from, to))
                                                   : print(lines_of(report, from, to)));
  return 0;
}

// One word at one moment, beside what it is at the last.
struct Station {
  StreamMoment when;
  WordDrift word;
};

Json json_of(const std::vector<Station>& path) {
  Json list = Json::array();
  for (const Station& station : path) {
    const bool seen = station.word.count_old > 0;
    list.push_back({{"step", station.when.step},
                    {"time", station.when.time_s > 0 ? Json(station.when.time_s) : Json(nullptr)},
                    {"count", station.word.count_old},
                    {"cosine", seen ? Json(rounded(station.word.cosine)) : Json(nullptr)},
                    {"overlap", seen ? Json(rounded(station.word.overlap)) : Json(nullptr)},
                    {"neighbours", station.word.neighbours_old}});
  }
  return list;
}

std::string lines_of(const std::string& name, const std::vector<Station>& path) {
  std::string lines = name + "\n";
  for (const Station& station : path) {
    char figures[96];
    std::snprintf(figures, sizeof figures, "  %-26s %7lld  %6.3f  %4.2f  ", text_of(station.when).c_str(),
                  static_cast<long long>(station.word.count_old), station.word.cosine, station.word.overlap);
    lines += figures + joined(station.word.neighbours_old) + "\n";
  }
  return lines;
}

// The way of the words asked for through every moment of the range. Moments that do not load are passed over.
Result<int> show_paths(const Arguments& arguments, const std::vector<Moment>& moments, const MomentRange& range) {
  const std::string& directory = arguments.words[0];
  const std::vector<std::string> words(arguments.words.begin() + 1, arguments.words.end());
  DriftOptions options;
  options.shown = static_cast<int32_t>(std::min<int64_t>(arguments.integer("k"), 1'000'000));
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot last, load(moments[range.to], directory));
  std::vector<std::vector<Station>> paths(words.size());
  std::vector<std::string> notes, unknown;
  for (size_t i = range.from; i <= range.to; ++i) {
    const auto snapshot = load(moments[i], directory);
    const auto compared = snapshot.ok() ? compare_words(*snapshot, last, words, options) : snapshot.status();
    if (!compared.ok()) notes.push_back(compared.status().message());
    for (size_t w = 0; compared.ok() && w < words.size(); ++w) paths[w].push_back({moments[i].when, (*compared)[w]});
  }
  print_notes(notes);
  Json answers = Json::array();
  std::string text;
  for (size_t w = 0; w < words.size(); ++w) {
    const bool seen = std::any_of(paths[w].begin(), paths[w].end(),
                                  [](const Station& station) { return station.word.count_old > 0; });
    if (!seen) unknown.push_back(words[w]);
    answers.push_back({{"word", words[w]}, {"seen", seen}, {"path", seen ? json_of(paths[w]) : Json::array()}});
    if (seen) text += lines_of(words[w], paths[w]);
  }
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(answers) : print(text));
  name_unknown(unknown, directory);
  return unknown.empty() ? 0 : 1;
}

}  // namespace

Result<int> run_drift(const Arguments& arguments) {
  const std::string& directory = arguments.words[0];
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot model, open_model(directory));
  STREAMVEC_RETURN_IF_ERROR(check_history(directory));
  std::vector<std::string> notes;
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<Moment> moments,
                             list_moments(directory, model.step, model.vocabulary.tokens(), &notes));
  print_notes(notes);
  STREAMVEC_ASSIGN_OR_RETURN(const MomentRange range, find_range(moments, arguments));
  return arguments.words.size() == 1 ? show_moved(arguments, moments, range) : show_paths(arguments, moments, range);
}

}  // namespace streamvec::cli
