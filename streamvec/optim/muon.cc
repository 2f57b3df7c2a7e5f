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

// Of rows that may begin and end anywhere, which the kernels' do not.
void nesterov(float momentum, int64_t cols, float* mean, float* slopes) {
  if (cols % Matrix::kRowMultiple == 0) return nesterov_step(momentum, static_cast<int32_t>(cols), mean, slopes);
  for (int64_t k = 0; k < cols; ++k) {
    mean[k] += (1 - momentum) * (slopes[k] - mean[k]);
    slopes[k] += momentum * (mean[k] - slopes[k]);
  }
}

double square_of(const MatrixView<float>& slopes) {
  const bool whole_vectors = slopes.cols % Matrix::kRowMultiple == 0;
  double square = 0;
  for (int64_t i = 0; i < slopes.rows; ++i) {
    if (whole_vectors) {
      square +=
          double{mean_square(slopes.row(i), static_cast<int32_t>(slopes.cols))} * static_cast<double>(slopes.cols);
      continue;
    }
    for (const float slope : slopes.row_span(i)) square += double{slope} * slope;
  }
  return square;
}

}  // namespace

Muon::Muon(std::shared_ptr<const PackedGemm> products, ThreadTeam& team)
    : products_(std::move(products)), team_(team), lanes_(static_cast<size_t>(team.size())) {}

std::vector<Muon::Cut> Muon::cuts_of(int64_t rows, int64_t cols, const MuonRates& rates) {
  const int64_t height = std::min(rows, cols), count = (height + rates.band_max - 1) / rates.band_max;
  std::vector<Cut> cuts;
  for (int64_t i = 0; i < count; ++i) cuts.push_back({rows > cols, height * i / count, height * (i + 1) / count});
  return cuts;
}

MatrixView<float> Muon::part_of(const MatrixView<float>& matrix, const Cut& cut) {
  const int64_t height = cut.end - cut.begin;
  if (!cut.turned) return some_rows(matrix, cut.begin, height);
  return {matrix.data + cut.begin, matrix.rows, height, matrix.stride};
}

double Muon::flops_of(const Cut& cut, int64_t length, const MuonRates& rates) {
  const auto height = static_cast<double>(cut.end - cut.begin);
  return 2 * height * height * (2 * static_cast<double>(length) + square_products(rates.iterations) * height);
}

void Muon::step(std::span<const Part> parts, float lr, const MuonRates& rates) {
  bands_.clear();
  for (const Part& part : parts) {
    const int64_t rows = part.values->rows(), cols = part.values->cols();
    for (const Cut& cut : cuts_of(rows, cols, rates)) {
      bands_.push_back({&part, cut});
      flops_ += flops_of(cut, std::max(rows, cols), rates);
    }
  }
  team_.run([&](int32_t member) { take_momentum(parts, rates.momentum, member); });
  std::atomic<size_t> next{0};
  team_.run([&](int32_t member) {
    for (size_t i = next++; i < bands_.size(); i = next++)
      step_band(bands_[i], lr, rates, lanes_[static_cast<size_t>(member)]);
  });
}

void Muon::even_out(std::span<const Band> bands, const MuonRates& rates) {
  for (const Band& band : bands) {
    const Cut all{band.turned, 0, band.turned ? band.slopes.cols : band.slopes.rows};
    flops_ += flops_of(all, band.turned ? band.slopes.rows : band.slopes.cols, rates);
  }
  std::atomic<size_t> next{0};
  team_.run([&](int32_t member) {
    for (size_t i = next++; i < bands.size(); i = next++)
      even_out_band(bands[i], rates, lanes_[static_cast<size_t>(member)]);
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

void Muon::step_band(const PartBand& band, float lr, const MuonRates& rates, Lane& lane) {
  const MatrixView<float> slopes = part_of(band.part->slopes->view(), band.cut);
  go(slopes, band.cut.turned, lr, rates, true, part_of(band.part->values->view(), band.cut), lane);
  for (int64_t i = 0; i < slopes.rows; ++i) std::fill_n(slopes.row(i), slopes.cols, 0.0f);
}

void Muon::even_out_band(const Band& band, const MuonRates& rates, Lane& lane) {
  const MatrixView<float>& slopes = band.slopes;
  // Sums of squares are to stay finite in f32. NaN is no less than anything either.
  if (const double square = square_of(slopes); square == 0 || !(square < kMuonSquareMost)) {
    for (int64_t i = 0; i < slopes.rows; ++i) std::fill_n(slopes.row(i), slopes.cols, 0.0f);
    return;
  }
  for (int64_t i = 0; i < slopes.rows; ++i) nesterov(rates.momentum, slopes.cols, band.momentum.row(i), slopes.row(i));
  if (!band.turned) return go(slopes, false, 1, rates, false, slopes, lane);
  const MatrixView<float> way = lane.way.reserve(slopes.rows, slopes.cols);
  go(slopes, true, 1, rates, false, way, lane);
  for (int64_t i = 0; i < slopes.rows; ++i) std::copy_n(way.row(i), slopes.cols, slopes.row(i));
}

void Muon::go(const MatrixView<float>& slopes, bool turned, float lr, const MuonRates& rates, bool add,
              const MatrixView<float>& to, Lane& lane) {
  const Factor x = turned ? transposed(slopes) : Factor(slopes);
  products_->pack(transposed(x), lane.packed);
  products_->multiply(x, lane.packed, false, lane.gram.reserve(x.rows(), x.rows()));
  find_power(rates.iterations, lane);
  scale_rows(lane.power.view(), lr * rates.length * std::sqrt(static_cast<float>(x.cols())));
  const Factor power = lane.power.view();
  if (turned) {
    products_->pack(transposed(power), lane.packed);
    products_->multiply(slopes, lane.packed, add, to);
  } else {
    products_->pack(slopes, lane.packed);
    products_->multiply(power, lane.packed, add, to);
  }
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
