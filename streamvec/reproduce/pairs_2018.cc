#include "streamvec/reproduce/pairs_2018.h"

#include <algorithm>

#include "streamvec/core/random.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {
namespace {

// Apart from each other and from all other draws of the seed.
constexpr uint64_t kTypeDraws = 18, kWindowDraws = 19;

std::vector<bool> kept_types(const Vocabulary& vocabulary, const PairOptions2018& options) {
  const Subsampling subsampling(vocabulary, options.sample);
  Random random(mix(options.seed, kTypeDraws));
  std::vector<bool> kept(static_cast<size_t>(vocabulary.size()));
  for (Slot slot = 0; slot < vocabulary.size(); ++slot)
    kept[static_cast<size_t>(slot)] = subsampling.keep(slot, random.next_u32());
  return kept;
}

void add_windows(std::span<const Slot> words, int32_t window, Random& random, std::vector<Pair2018>& pairs) {
  const auto size = static_cast<int64_t>(words.size());
  for (int64_t i = 0; i < size; ++i) {
    const int64_t reach = 1 + random.below(static_cast<uint32_t>(window));
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= std::min(size - 1, i + reach); ++j)
      if (j != i) pairs.push_back({words[static_cast<size_t>(i)], words[static_cast<size_t>(j)]});
  }
}

}  // namespace

Result<std::vector<Pair2018>> make_pairs_2018(const SentenceStream& stream, const Vocabulary& vocabulary,
                                              const PairOptions2018& options) {
  const std::vector<bool> kept = kept_types(vocabulary, options);
  std::vector<Pair2018> pairs;
  std::vector<Slot> words;
  Random random(mix(options.seed, kWindowDraws));
  PairOptions drawn;
  drawn.sample = options.removes_types ? 0 : options.sample;
  drawn.seed = options.seed;
  STREAMVEC_RETURN_IF_ERROR(
      visit_subsampled(stream, vocabulary, drawn, [&](int64_t, std::span<const Slot> sentence) -> Status {
        words.clear();
        for (const Slot slot : sentence)
          if (!options.removes_types || kept[static_cast<size_t>(slot)]) words.push_back(slot);
        add_windows(words, options.window, random, pairs);
        return {};
      }));
  if (pairs.empty()) return error(Code::kInvalidArgument, "the text has no two known words beside each other");
  return pairs;
}

Result<Matrix> reversed_batches(const Matrix& rows, int64_t batch) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix reversed, Matrix::make(rows.rows(), rows.cols()));
  for (int64_t begin = 0; begin < rows.rows(); begin += batch) {
    const int64_t end = std::min(begin + batch, rows.rows());
    for (int64_t i = begin; i < end; ++i) std::copy_n(rows.row(i), rows.cols(), reversed.row(begin + end - 1 - i));
  }
  return reversed;
}

}  // namespace streamvec
