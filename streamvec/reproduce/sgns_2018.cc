#include "streamvec/reproduce/sgns_2018.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

constexpr uint64_t kFirstRows = 20;
constexpr size_t kBlock = 4096;  // of values, for Adam

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
      shares_(static_cast<size_t>(options.threads)),
      team_(options.threads) {
  padded_.reserve_zeroed(2 * rows, options.dim);
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
                            Share& share) const {
  const auto dim = static_cast<int32_t>(options_.dim), words = options_.negatives + 1;
  std::vector<const float*> rows(static_cast<size_t>(words));
  std::vector<float*> slopes(rows.size());
  RowBuffer scratch;
  const MatrixView<float> products = scratch.reserve_zeroed(2, words);
  std::fill_n(products.row(1), words, 1.0f);
  double loss = 0;
  for (const Pair2018& pair : pairs) {
    const float* centre = padded_.row(pair.centre);
    for (int32_t k = 0; k < words; ++k) {
      const int64_t row = rows_ + (k == 0 ? pair.context : negatives.sample(random));
      rows[static_cast<size_t>(k)] = padded_.row(row);
      slopes[static_cast<size_t>(k)] = share.slopes.row(row);
      products.row(0)[k] = dot(centre, padded_.row(row), dim);
    }
    // What is true of a word drawn is true of the context by the product's other sign.
    float* slope = products.row(0);
    slope[0] = -slope[0];
    loss += climb_negatives(products.row(1), words, slope);
    slope[0] = -slope[0];
    sum_scaled_rows(rows.data(), slope, words, dim, share.centre.row(0));
    add_scaled_to_rows(centre, slope, dim, slopes.data(), words);
    add_scaled(share.centre.row(0), 1, dim, share.slopes.row(pair.centre));
  }
  return loss;
}

double Sgns2018::slopes_of(std::span<const Pair2018> batch, const AliasTable& negatives, Random& random,
                           std::vector<float>& slopes) {
  const auto members = static_cast<size_t>(team_.size());
  const auto dim = static_cast<size_t>(options_.dim);
  std::vector<double> losses(members);
  std::vector<uint64_t> seeds(members);
  for (uint64_t& seed : seeds) seed = random.next();
  for_each_row([&](int64_t row) { std::copy_n(&values_[static_cast<size_t>(row) * dim], dim, padded_.row(row)); });
  team_.run([&](int32_t thread) {
    const auto member = static_cast<size_t>(thread);
    Share& own = shares_[member];
    own.slopes.reserve_zeroed(2 * rows_, options_.dim);
    own.centre.reserve_zeroed(1, options_.dim);
    const size_t begin = batch.size() * member / members, end = batch.size() * (member + 1) / members;
    losses[member] = add_slopes(batch.subspan(begin, end - begin), negatives, Random(seeds[member]), own);
  });
  slopes.resize(values_.size());
  for_each_row([&](int64_t row) {
    for (size_t member = 1; member < members; ++member)
      add_scaled(shares_[member].slopes.row(row), 1, static_cast<int32_t>(dim), shares_[0].slopes.row(row));
    std::copy_n(shares_[0].slopes.row(row), dim, &slopes[static_cast<size_t>(row) * dim]);
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void Sgns2018::for_each_row(const std::function<void(int64_t)>& use) {
  team_.run([&](int32_t thread) {
    const int64_t rows = 2 * rows_;
    for (int64_t row = rows * thread / team_.size(); row < rows * (thread + 1) / team_.size(); ++row) use(row);
  });
}

void Sgns2018::step(const std::vector<float>& slopes) {
  ++steps_;
  const size_t blocks = (values_.size() + kBlock - 1) / kBlock, members = static_cast<size_t>(team_.size());
  team_.run([&](int32_t thread) {
    const auto member = static_cast<size_t>(thread);
    for (size_t block = blocks * member / members; block < blocks * (member + 1) / members; ++block)
      step_block(slopes, block * kBlock, std::min(kBlock, values_.size() - block * kBlock));
  });
}

// adam_step wants whole rows of 16 on 64-byte boundaries, which dim values a row are not: it gets a copy.
void Sgns2018::step_block(const std::vector<float>& slopes, size_t begin, size_t size) {
  alignas(64) float slope[kBlock], mean[kBlock], variance[kBlock], value[kBlock];
  const size_t padded = (size + 15) / 16 * 16;
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

Result<Matrix> Sgns2018::input() const {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix rows, Matrix::make(rows_, options_.dim));
  for (int64_t i = 0; i < rows_; ++i) std::copy_n(values_.data() + i * options_.dim, options_.dim, rows.row(i));
  return rows;
}

}  // namespace streamvec
