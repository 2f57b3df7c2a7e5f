#include "streamvec/train/stream_measures.h"

#include <string>

namespace streamvec {

Result<StreamEvaluator::Options> evaluator_options(const TrainOptions& options, int64_t dim) {
  const StreamOptions& stream = options.stream;
  StreamEvaluator::Options measures;
  measures.every_s = stream.evaluate_every_s;
  measures.snapshot_every = stream.snapshot_every;
  for (const std::string& path : stream.similarity) {
    STREAMVEC_ASSIGN_OR_RETURN(measures.similarity.emplace_back(), read_similarity_set(path));
  }
  for (const std::string& path : stream.analogy) {
    STREAMVEC_ASSIGN_OR_RETURN(measures.analogy.emplace_back(), read_analogy_set(path));
  }
  measures.probe.pairs.window = options.window;
  measures.probe.pairs.negatives = options.negatives;
  measures.probe.pairs.sample = options.sample;
  measures.probe.pairs.seed = options.seed;
  measures.probe.half_life = stream.half_life.value;
  measures.probe.dim = dim;
  return measures;
}

}  // namespace streamvec
