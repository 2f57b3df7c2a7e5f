#include "streamvec/optim/muon.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "streamvec/kernel/gemm.h"
#include "streamvec/kernel/row_ops.h"

namespace streamvec {
namespace {

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
      flops_ += rates.iterations * 2 * h * h * (2 * static_cast<double>(width) + h);
    }
  }
  std::atomic<size_t> next{0};
  team_.run([&](int32_t member) {
    for (size_t i = next++; i < bands_.size(); i = next++)
      step_band(bands_[i], lr, rates, lanes_[static_cast<size_t>(member)]);
  });
}

void Muon::step_band(const Band& band, float lr, const MuonRates& rates, Lane& lane) {
  const Part& part = *band.part;
  const int64_t height = band.end - band.begin, width = band.turned ? part.values->rows() : part.values->cols();
  lane.x.reserve_zeroed(height, width);  // sums go over its padding, too
  lane.gram.reserve(height, height);
  lane.factor.reserve(height, height);
  // Calls use(row of the part, its first column here, how many there are, what they are of x, how far apart there).
  const auto for_each_row = [&](const auto& use) {
    const MatrixView<float>& x = lane.x.view();
    if (band.turned)
      for (int64_t k = 0; k < width; ++k) use(k, band.begin, height, x.data + k, x.stride);
    else
      for (int64_t i = 0; i < height; ++i) use(band.begin + i, int64_t{0}, width, x.row(i), int64_t{1});
  };
  for_each_row([&](int64_t row, int64_t first, int64_t count, float* x, int64_t apart) {
    float *slopes = part.slopes->row(row) + first, *means = part.momentum->row(row) + first;
    for (int64_t k = 0; k < count; ++k) {
      // Nesterov's: the mean as it is, once more drawn towards it.
      means[k] += (1 - rates.momentum) * (slopes[k] - means[k]);
      slopes[k] += rates.momentum * (means[k] - slopes[k]);
    }
    for (int64_t k = 0; k < count; ++k) x[k * apart] = slopes[k];
    std::fill_n(slopes, count, 0.0f);
  });
  even_out(rates.iterations, lane);
  const float length = lr * rates.length * std::sqrt(static_cast<float>(width));
  for_each_row([&](int64_t row, int64_t first, int64_t count, const float* x, int64_t apart) {
    float* values = part.values->row(row) + first;
    for (int64_t k = 0; k < count; ++k) values[k] += length * x[k * apart];
  });
}

void Muon::even_out(int32_t iterations, Lane& lane) {
  const MatrixView<float>&x = lane.x.view(), &gram = lane.gram.view(), &factor = lane.factor.view();
  double square = 0;
  for (int64_t i = 0; i < x.rows; ++i)
    square += double{mean_square(x.row(i), static_cast<int32_t>(x.cols))} * static_cast<double>(x.cols);
  scale_rows(x, static_cast<float>(1 / std::sqrt(std::max(square, kMuonSquareMin))));
  for (int32_t k = 0; k < iterations; ++k) {
    products_->pack(transposed(x), lane.packed);
    products_->multiply(x, lane.packed, false, gram);
    products_->pack(gram, lane.packed);
    products_->multiply(gram, lane.packed, false, factor);
    for (int64_t i = 0; i < gram.rows; ++i)
      for (int64_t j = 0; j < gram.cols; ++j)
        factor.row(i)[j] = kMuonQuintic * factor.row(i)[j] + kMuonCubic * gram.row(i)[j];
    products_->pack(x, lane.packed);
    scale_rows(x, kMuonLinear);
    products_->multiply(factor, lane.packed, true, x);
  }
}

}  // namespace streamvec
