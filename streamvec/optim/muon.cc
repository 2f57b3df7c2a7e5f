#include "streamvec/optim/muon.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "streamvec/core/status.h"
#include "streamvec/kernel/gemm.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

// Products of square matrices that find_power() takes: all of four in each iteration but those of the first and last.
int32_t square_products(int32_t iterations) {
  return 4 * iterations - 3;
}

void scale_rows(const MatrixView<float>& rows, float factor) {
  for (int64_t i = 0; i < rows.rows; ++i)
    std::transform(rows.row(i), rows.row(i) + rows.cols, rows.row(i), [=](float value) { return factor * value; });
}

}  // namespace

Muon::Muon(std::shared_ptr<const PackedGemm> products, ThreadTeam& team)
    : products_(std::move(products)), team_(team), lanes_(static_cast<size_t>(team.size())) {}

void Muon::step(std::span<const Part> parts, float lr, const MuonRates& rates) {
  bands_.clear();
  for (const Part& part : parts) {
    const int64_t rows = part.values->rows(), cols = part.values->cols();
    const int64_t height = std::min(rows, cols), width = std::max(rows, cols);
    const int64_t count = (height + rates.band_max - 1) / rates.band_max;
    for (int64_t i = 0; i < count; ++i) {
      bands_.push_back({&part, rows > cols, height * i / count, height * (i + 1) / count});
      const auto h = static_cast<double>(bands_.back().end - bands_.back().begin);
      flops_ += 2 * h * h * (2 * static_cast<double>(width) + square_products(rates.iterations) * h);
    }
  }
  team_.run([&](int32_t member) { take_momentum(parts, rates.momentum, member); });
  std::atomic<size_t> next{0};
  team_.run([&](int32_t member) {
    for (size_t i = next++; i < bands_.size(); i = next++)
      step_band(bands_[i], lr, rates, lanes_[static_cast<size_t>(member)]);
  });
}

// Slopes become what is to be evened out.
void Muon::take_momentum(std::span<const Part> parts, float momentum, int32_t member) {
  for (const Part& part : parts) {
    const int64_t rows = part.values->rows(), begin = rows * member / team_.size();
    for (int64_t row = begin; row < rows * (member + 1) / team_.size(); ++row)
      nesterov_step(momentum, static_cast<int32_t>(part.values->cols()), part.momentum->row(row),
                    part.slopes->row(row));
  }
}

void Muon::step_band(const Band& band, float lr, const MuonRates& rates, Lane& lane) {
  const int64_t height = band.end - band.begin;
  const auto of_band = [&](Matrix& matrix) -> MatrixView<float> {
    const MatrixView<float> all = matrix.view();
    if (!band.turned) return some_rows(all, band.begin, height);
    return {all.data + band.begin, all.rows, height, all.stride};
  };
  const MatrixView<float> slopes = of_band(*band.part->slopes), values = of_band(*band.part->values);
  const Factor x = band.turned ? transposed(slopes) : Factor(slopes);
  products_->pack(transposed(x), lane.packed);
  products_->multiply(x, lane.packed, false, lane.gram.reserve(height, height));
  find_power(rates.iterations, lane);
  scale_rows(lane.power.view(), lr * rates.length * std::sqrt(static_cast<float>(x.cols())));
  const Factor power = lane.power.view();
  if (band.turned) {
    products_->pack(transposed(power), lane.packed);
    products_->multiply(slopes, lane.packed, true, values);
  } else {
    products_->pack(slopes, lane.packed);
    products_->multiply(power, lane.packed, true, values);
  }
  for (int64_t i = 0; i < slopes.rows; ++i) std::fill_n(slopes.row(i), slopes.cols, 0.0f);
}

void Muon::find_power(int32_t iterations, Lane& lane) {
  STREAMVEC_CHECK(iterations > 0);
  const MatrixView<float> gram = lane.gram.view();
  const int64_t height = gram.rows;
  const MatrixView<float> factor = lane.factor.reserve(height, height);
  double square = 0;
  for (int64_t i = 0; i < height; ++i) square += double{gram.row(i)[i]};
  const double norm = std::sqrt(std::max(square, kMuonSquareMin));
  scale_rows(gram, static_cast<float>(1 / (norm * norm)));
  lane.next.reserve(height, height);
  for (int32_t k = 0; k < iterations; ++k) {
    products_->pack(gram, lane.packed);
    products_->multiply(gram, lane.packed, false, factor);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < height; ++j)
        factor.row(i)[j] = kMuonQuintic * factor.row(i)[j] + kMuonCubic * gram.row(i)[j];
      factor.row(i)[i] += kMuonLinear;
    }
    if (k + 1 < iterations) {
      products_->multiply(factor, lane.packed, false, lane.next.view());
      products_->pack(factor, lane.packed);
      products_->multiply(lane.next.view(), lane.packed, false, gram);
    }
    if (k == 0) {
      lane.power.reserve(height, height);
      for (int64_t i = 0; i < height; ++i)
        std::transform(factor.row(i), factor.row(i) + height, lane.power.row(i),
                       [&](float value) { return value / static_cast<float>(norm); });
      continue;
    }
    products_->pack(lane.power.view(), lane.packed);
    products_->multiply(factor, lane.packed, false, lane.next.view());
    std::swap(lane.power, lane.next);
  }
}

}  // namespace streamvec
