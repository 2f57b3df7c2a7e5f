#include "streamvec/eval/held_out.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec {
namespace {

using ConstVector = Eigen::Map<const Eigen::VectorXf>;

// log(1 + e^x) = -log sigma(-x), for any x.
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

class LossMeter {
 public:
  LossMeter(const Snapshot& snapshot, const PairOptions& options)
      : snapshot_(snapshot),
        window_(options.window),
        negatives_(static_cast<size_t>(options.negatives)),
        negative_losses_(negatives_.size()),
        noise_(snapshot.vocabulary, options.smoothing),
        context_(snapshot.dim()) {}

  void add(std::span<const Slot> sentence, Random& random) {
    const bool cbow = snapshot_.model == "cbow";
    for (int64_t centre = 0; centre < std::ssize(sentence); ++centre) {
      for (Slot& slot : negatives_) slot = noise_.sample(random);
      cbow ? add_mean(sentence, centre) : add_pairs(sentence, centre);
    }
  }
  double loss() const { return loss_ / weight_; }
  double weight() const { return weight_; }

 private:
  double product(const Eigen::Ref<const Eigen::VectorXf>& vector, Slot output) const {
    return vector.dot(ConstVector(snapshot_.output.row(output), snapshot_.dim()));
  }

  // -log sigma(-u_k.v) of the negatives drawn.
  void weigh_negatives(const Eigen::Ref<const Eigen::VectorXf>& vector) {
    for (size_t k = 0; k < negatives_.size(); ++k) negative_losses_[k] = softplus(product(vector, negatives_[k]));
  }

  void add_target(const Eigen::Ref<const Eigen::VectorXf>& vector, Slot target, double weight) {
    double loss = softplus(-product(vector, target));
    for (size_t k = 0; k < negatives_.size(); ++k)
      if (negatives_[k] != target) loss += negative_losses_[k];
    loss_ += weight * loss;
    weight_ += weight;
  }

  void add_pairs(std::span<const Slot> sentence, int64_t centre) {
    const ConstVector vector(snapshot_.input.row(sentence[static_cast<size_t>(centre)]), snapshot_.dim());
    weigh_negatives(vector);
    for (int64_t d = -window_; d <= window_; ++d) {
      const int64_t at = centre + d;
      if (d == 0 || at < 0 || at >= std::ssize(sentence)) continue;
      add_target(vector, sentence[static_cast<size_t>(at)], static_cast<double>(window_ - std::abs(d) + 1) / window_);
    }
  }

  // Window sizes 1..window, each as likely: the sum of the context grows with the window.
  void add_mean(std::span<const Slot> sentence, int64_t centre) {
    context_.setZero();
    int32_t words = 0;
    for (int64_t d = 1; d <= window_; ++d) {
      for (const int64_t at : {centre - d, centre + d}) {
        if (at < 0 || at >= std::ssize(sentence)) continue;
        context_ += ConstVector(snapshot_.input.row(sentence[static_cast<size_t>(at)]), snapshot_.dim());
        ++words;
      }
      if (words == 0) return;  // a sentence of one word
      const Eigen::VectorXf mean = context_ / static_cast<float>(words);
      weigh_negatives(mean);
      add_target(mean, sentence[static_cast<size_t>(centre)], 1.0 / window_);
    }
  }

  const Snapshot& snapshot_;
  int64_t window_;
  std::vector<Slot> negatives_;
  std::vector<double> negative_losses_;
  AliasTable noise_;
  Eigen::VectorXf context_;
  double loss_ = 0, weight_ = 0;
};

}  // namespace

Result<HeldOutLoss> measure_held_out(const Snapshot& snapshot, const SentenceStream& stream,
                                     const PairOptions& options) {
  STREAMVEC_RETURN_IF_ERROR(check(options));
  if (snapshot.output.rows() == 0)
    return error(
        Code::kFailedPrecondition,
        "the model has word vectors but no context vectors, as imported and glove models do; --pip needs none");
  LossMeter meter(snapshot, options);
  HeldOutLoss result;
  const SentenceStream counted = [&](const SentenceVisitor& visitor) {
    return stream([&](std::span<const Slot> sentence) {
      result.tokens += std::ssize(sentence) - std::count(sentence.begin(), sentence.end(), kNoSlot);
      visitor(sentence);
    });
  };
  STREAMVEC_RETURN_IF_ERROR(visit_subsampled(
      counted, snapshot.vocabulary, options, [&](int64_t number, std::span<const Slot> sentence) -> Status {
        Random random(mix(options.seed, static_cast<uint64_t>(number), uint64_t{1}));
        meter.add(sentence, random);
        return {};
      }));
  if (!(meter.weight() > 0))
    return error(Code::kInvalidArgument,
                 "the text has no two words of the vocabulary within a window; is it in the "
                 "model's language?");
  result.loss = meter.loss();
  result.weight = meter.weight();
  return result;
}

}  // namespace streamvec
