// What `eval` found, and its JSON form, which other programs read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "streamvec/eval/analogy.h"
#include "streamvec/eval/choose_dim.h"
#include "streamvec/eval/held_out.h"
#include "streamvec/eval/pip.h"
#include "streamvec/eval/similarity.h"

namespace streamvec {

struct EvalReport {
  std::vector<SimilarityResult> similarity;
  std::vector<AnalogyResult> analogy;
  std::optional<PipReport> pip;
  std::optional<HeldOutLoss> held_out;
  std::optional<DimChoice> choose_dim;
};

// {"similarity":[{"set","spearman","pairs","covered"}],
//  "analogy":[{"set","accuracy","questions","covered","cosmul_accuracy","sections":[the same with "section"]}],
//  "pip":{"relative","scale","relative_unscaled","mean_square","cka","scale_free","neighbour_overlap","norm",
//         "oracle_dim","oracle_norm","references":{name:{the first eight}}},
//  "loss":...}  and, only when it was asked for, "choose_dim":{"dim","low","high","at_limit","noise","loss":[...]}
// "accuracy" is 3CosAdd's. What was not measured, and a number that is not defined (NaN), is null; the lists are empty.
nlohmann::ordered_json to_json(const EvalReport& report);

}  // namespace streamvec
