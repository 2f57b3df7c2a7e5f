#include "streamvec/reproduce/sgns_2018.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr uint64_t kFirstRows = 20;

float dot(const float* a, const float* b, int64_t dim) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= dim; i += 16)
    for (int64_t j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  float rest = 0;
  for (; i < dim; ++i) rest += a[i] * b[i];
  return std::accumulate(std::begin(sums), std::end(sums), rest);
}

void add(const float* from, float scale, int64_t dim, float* to) {
  for (int64_t i = 0; i < dim; ++i) to[i] += scale * from[i];
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

// -log sigmoid(x)
double softplus_of_minus(float x) {
  return x < 0 ? std::log1p(std::exp(x)) - x : std::log1p(std::exp(-x));
}

// Box and Muller.
float normal(Random& random) {
  const float radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi_v<float> * random.uniform());
}

}  // namespace

Sgns2018::Sgns2018(const SgnsOptions2018& options, int64_t rows)
    : options_(options),
      rows_(rows),
      values_(static_cast<size_t>(2 * rows * options.dim)),
      mean_(values_.size()),
      variance_(values_.size()),
      shares_(static_cast<size_t>(options.threads - 1)),
      team_(options.threads) {
  Random random(mix(options.seed, kFirstRows));
  const size_t input = values_.size() / 2;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (options.starts_normal)
      values_[i] = normal(random);
    else if (i < input)
      values_[i] = (random.uniform() - 0.5f) / static_cast<float>(options.dim);
  }
}

double Sgns2018::add_slopes(std::span<const Pair2018> pairs, const AliasTable& negatives, Random random,
                            float* slopes) const {
  const int64_t dim = options_.dim, output = rows_ * dim;
  std::vector<float> centre_slope(static_cast<size_t>(dim));
  double loss = 0;
  for (const Pair2018& pair : pairs) {
    const float* centre = &values_[static_cast<size_t>(pair.centre * dim)];
    std::fill(centre_slope.begin(), centre_slope.end(), 0.0f);
    for (int32_t k = 0; k <= options_.negatives; ++k) {
      const Slot word = k == 0 ? pair.context : negatives.sample(random);
      const int64_t row = output + word * dim;
      const float product = dot(centre, &values_[static_cast<size_t>(row)], dim);
      const float slope = (k == 0 ? 1.0f : 0.0f) - sigmoid(product);
      loss += softplus_of_minus(k == 0 ? product : -product);
      add(&values_[static_cast<size_t>(row)], slope, dim, centre_slope.data());
      add(centre, slope, dim, slopes + row);
    }
    add(centre_slope.data(), 1, dim, slopes + pair.centre * dim);
  }
  return loss;
}

double Sgns2018::slopes_of(std::span<const Pair2018> batch, const AliasTable& negatives, Random& random,
                           std::vector<float>& slopes) {
  const auto members = static_cast<size_t>(team_.size());
  std::vector<double> losses(members);
  std::vector<uint64_t> seeds(members);
  for (uint64_t& seed : seeds) seed = random.next();
  team_.run([&](int32_t thread) {
    const auto member = static_cast<size_t>(thread);
    std::vector<float>& own = member == 0 ? slopes : shares_[member - 1];
    own.assign(values_.size(), 0);
    const size_t begin = batch.size() * member / members, end = batch.size() * (member + 1) / members;
    losses[member] = add_slopes(batch.subspan(begin, end - begin), negatives, Random(seeds[member]), own.data());
  });
  for (const std::vector<float>& share : shares_)
    add(share.data(), 1, static_cast<int64_t>(share.size()), slopes.data());
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void Sgns2018::step(const std::vector<float>& slopes) {
  ++steps_;
  // adam_step wants whole rows of 16 on 64-byte boundaries, which dim values a row are not: go by blocks of a copy.
  constexpr size_t kBlock = 4096;
  alignas(64) float slope[kBlock], mean[kBlock], variance[kBlock], value[kBlock];
  for (size_t begin = 0; begin < values_.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, values_.size() - begin), padded = (size + 15) / 16 * 16;
    const auto load = [&](const std::vector<float>& from, float* to) {
      std::copy_n(from.data() + begin, size, to);
      std::fill(to + size, to + padded, 0.0f);
    };
    load(slopes, slope);
    load(mean_, mean);
    load(variance_, variance);
    load(values_, value);
    adam_step(slope, options_.lr, steps_, AdamRates{}, static_cast<int32_t>(size), mean, variance, value);
    std::copy_n(mean, size, mean_.data() + begin);
    std::copy_n(variance, size, variance_.data() + begin);
    std::copy_n(value, size, values_.data() + begin);
  }
}

Result<Matrix> Sgns2018::input() const {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, Matrix::make(rows_, options_.dim));
  for (int64_t i = 0; i < rows_; ++i) std::copy_n(values_.data() + i * options_.dim, options_.dim, rows.row(i));
  return rows;
}

}  // namespace streamvec
