// What came of the experiment, as a page and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/reproduce/experiment.h"

namespace streamvec {

struct ExperimentReport {
  std::vector<std::pair<std::string, std::string>> facts;  // machine, commit, corpus, settings, command
  std::vector<RowResult> rows;
  // Of each dim, what vectors without training and oracles of half the text get (PipReport::references).
  std::vector<std::pair<int64_t, std::vector<std::pair<std::string, PipFigures>>>> references;
  std::vector<std::string> notes;    // what to know of how it was measured
  std::vector<std::string> not_run;  // what could not be run here, and why
};

// Self-contained HTML; rows without figures say why.
std::string page_of(const ExperimentReport& report);
// {"facts":{},"rows":[{"name","arm","model","setting","dim","batch","command","epochs","pairs","pairs_per_s",
//  "seconds_per_epoch","wire_bytes_per_pair","seconds_on_their_network","kernel","loss","pip":{"relative","cka",
//  "neighbour_overlap","mean_square","best_mean_square"},"points":[{"epochs","relative","cka","mean_square","loss"}],
//  "similarity":[{"set","spearman","covered"}],"published":{"seconds","pairs_per_s","pip","converged"},"failure"}],
//  "references":{dim:{name:{"relative","cka","mean_square"}}},"notes":[],"not_run":[]}
// What there is not is null.
nlohmann::ordered_json to_json(const ExperimentReport& report);

}  // namespace streamvec
