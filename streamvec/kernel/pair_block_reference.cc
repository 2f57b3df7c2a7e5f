// The definition in pair_block.h, word for word, in double precision.
#include <cmath>

#include "streamvec/kernel/pair_block.h"

namespace streamvec {
namespace {

double softplus(double z) {
  return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
}

double dot(const float* a, const float* b, int32_t dim) {
  double sum = 0;
  for (int32_t d = 0; d < dim; ++d) sum += double{a[d]} * b[d];
  return sum;
}

class ReferencePairKernel final : public PairKernel {
 public:
  PairBlockResult step(const PairBlock& block) override {
    PairBlockResult result;
    coefficient_.assign(static_cast<size_t>(block.outputs) * block.inputs, 0);
    for (int32_t i = 0; i < block.outputs; ++i) {
      const double label = i < block.positives ? 1 : 0;
      for (int32_t j = 0; j < block.inputs; ++j) {
        const double product = dot(block.y[i], block.x[j], block.dim);
        if (!std::isfinite(product)) result.finite = false;
        const double sigma = 1 / (1 + std::exp(-product));
        const double weight = block.weight[i][j];
        result.loss += weight * softplus(label > 0 ? -product : product);
        result.slope += weight * std::abs(label - sigma);
        coefficient_[static_cast<size_t>(i) * block.inputs + j] = block.scale * weight * (label - sigma);
      }
    }
    if (result.finite) descend(block);
    return result;
  }

  std::string name() const override { return "reference"; }

 private:
  void descend(const PairBlock& block) {
    const auto coefficient = [&](int32_t i, int32_t j) {
      return coefficient_[static_cast<size_t>(i) * block.inputs + j];
    };
    const auto length = [&](const float* paces, const float* longest, int32_t row, double sum) {
      const double pace = paces != nullptr ? paces[row] : 1.0,
                   most = longest != nullptr ? longest[row] : block.step_max;
      return most > 0 && pace * sum > most ? most / sum : pace;
    };
    dx_.assign(static_cast<size_t>(block.inputs) * block.dim, 0);
    for (int32_t j = 0; j < block.inputs; ++j)
      for (int32_t i = 0; i < block.outputs; ++i)
        for (int32_t d = 0; d < block.dim; ++d)
          dx_[static_cast<size_t>(j) * block.dim + d] += coefficient(i, j) * block.y[i][d];
    // y may change now: dx has been taken from its old values, and x is still old.
    for (int32_t i = 0; i < block.outputs; ++i) {
      double total = 0;
      for (int32_t j = 0; j < block.inputs; ++j) total += std::abs(coefficient(i, j));
      for (int32_t d = 0; d < block.dim; ++d) {
        double sum = 0;
        for (int32_t j = 0; j < block.inputs; ++j) sum += coefficient(i, j) * block.x[j][d];
        block.dy[i][d] += static_cast<float>(length(block.output_pace, block.output_max, i, total) * sum);
      }
    }
    for (int32_t j = 0; j < block.inputs; ++j) {
      double total = 0;
      for (int32_t i = 0; i < block.outputs; ++i) total += std::abs(coefficient(i, j));
      for (int32_t d = 0; d < block.dim; ++d)
        block.dx[j][d] += static_cast<float>(length(block.input_pace, block.input_max, j, total) *
                                             dx_[static_cast<size_t>(j) * block.dim + d]);
    }
  }

  std::vector<double> coefficient_, dx_;
};

}  // namespace

std::unique_ptr<PairKernel> make_reference_pair_kernel() {
  return std::make_unique<ReferencePairKernel>();
}

}  // namespace streamvec
