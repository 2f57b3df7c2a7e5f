#include "streamvec/eval/choose_dim.h"

#include <algorithm>
#include <cmath>

#include "streamvec/eval/sppmi.h"
#include "streamvec/eval/svd.h"

namespace streamvec {
namespace {

constexpr double kTolerance = 1.05;  // losses within 5% are as good

// The signal value behind an observed one: l + t^2 / l = s solved for the l above t; 0 when noise alone reaches s.
double signal_behind(double observed, double level) {
  if (observed <= 2 * level) return 0;
  return (observed + std::sqrt(observed * observed - 4 * level * level)) / 2;
}

// How much keeping this value changes the squared loss.
double change_of_keeping(double observed, double level) {
  const double signal = signal_behind(observed, level);
  if (signal == 0) return observed * observed;
  return observed * observed - 2 * observed * (signal - level * level / signal);
}

}  // namespace

DimChoice choose_dim(std::span<const double> spectrum, double squared_norm, int64_t size, double noise) {
  const double level = noise * std::sqrt(static_cast<double>(size));
  double shown = 0;
  for (const double observed : spectrum) shown += std::pow(signal_behind(observed, level), 2);
  double squared = std::max(shown, squared_norm - level * level * static_cast<double>(size));
  DimChoice choice;
  choice.noise = noise;
  choice.loss.push_back(std::sqrt(squared));
  for (const double observed : spectrum) {
    squared = std::max(0.0, squared + change_of_keeping(observed, level));
    choice.loss.push_back(std::sqrt(squared));
  }
  if (spectrum.empty()) return choice;
  const auto best = std::min_element(choice.loss.begin() + 1, choice.loss.end());
  const auto good = [&](double loss) { return loss <= *best * kTolerance; };
  choice.dim = best - choice.loss.begin();
  choice.dim_low = std::find_if(choice.loss.begin() + 1, choice.loss.end(), good) - choice.loss.begin();
  choice.dim_high =
      static_cast<int64_t>(choice.loss.rend() - std::find_if(choice.loss.rbegin(), choice.loss.rend(), good)) - 1;
  choice.at_limit = choice.dim_high == static_cast<int64_t>(spectrum.size());
  return choice;
}

Result<DimChoice> choose_dim(const SentenceStream& stream, const Vocabulary& vocabulary,
                             const ChooseDimOptions& options) {
  STREAMVEC_ASSIGN_OR_RETURN(auto halves, count_pairs_of_halves(stream, vocabulary, options.counts));
  const PairCounts counts = add(halves[0], halves[1]);
  if (counts.pairs() == 0)
    return error(Code::kInvalidArgument,
                 "the text has no two words of the vocabulary within a window; give the text "
                 "the model was trained on");
  const PairOptions& pairs = options.counts.pairs;
  const double difference =
      squared_distance(make_sppmi(halves[0], vocabulary, pairs), make_sppmi(halves[1], vocabulary, pairs));
  halves = {};
  const double noise = std::sqrt(difference) / 2 / static_cast<double>(vocabulary.size());
  const SparseMatrix sppmi = make_sppmi(counts, vocabulary, pairs);
  SvdOptions svd;
  svd.rank = options.dim_max;
  svd.basis_factor = options.basis_factor;
  STREAMVEC_ASSIGN_OR_RETURN(const Factorisation factors, factorise(sppmi, svd));
  return choose_dim(factors.singular_values, sppmi.squared_norm(), sppmi.size(), noise);
}

}  // namespace streamvec
