// A character LSTM read word by word in double precision by plain loops, and its way back by the chain rule: what the
// trie's is held against. It is itself held against finite differences (trie_lstm_test.cc).
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "streamvec/model/trie_lstm.h"

namespace streamvec::testing {

using Values = std::vector<double>;

// The six matrices of EncoderParameters in double, without padding; in the order of all().
struct PlainEncoder {
  enum Part { kCharacters, kInput, kRecurrent, kBias, kOutput, kOutputBias };
  struct Table {
    int64_t cols = 0;
    Values values;
    double& at(int64_t i, int64_t k) { return values[static_cast<size_t>(i * cols + k)]; }
    double at(int64_t i, int64_t k) const { return values[static_cast<size_t>(i * cols + k)]; }
  };

  explicit PlainEncoder(EncoderParameters& from) {
    for (size_t part = 0; part < tables.size(); ++part) {
      const Matrix& matrix = *from.all()[part].values;
      tables[part].cols = matrix.cols();
      for (int64_t i = 0; i < matrix.rows(); ++i)
        tables[part].values.insert(tables[part].values.end(), matrix.row(i), matrix.row(i) + matrix.cols());
    }
  }
  PlainEncoder zeros() const {
    PlainEncoder copy = *this;
    for (Table& table : copy.tables) std::fill(table.values.begin(), table.values.end(), 0.0);
    return copy;
  }
  const Table& operator[](Part part) const { return tables[part]; }
  Table& operator[](Part part) { return tables[part]; }
  int64_t hidden() const { return tables[kBias].cols / 4; }
  int64_t dim() const { return tables[kOutputBias].cols; }

  std::array<Table, 6> tables;
};

struct PlainStep {
  Values i, f, g, o, c, h;
};

inline double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}

inline PlainStep plain_step(const PlainEncoder& encoder, CharacterId character, const PlainStep& before) {
  const int64_t hidden = encoder.hidden();
  Values z = encoder[PlainEncoder::kBias].values;
  for (int64_t n = 0; n < 4 * hidden; ++n) {
    for (int64_t k = 0; k < encoder[PlainEncoder::kCharacters].cols; ++k)
      z[n] += encoder[PlainEncoder::kCharacters].at(character, k) * encoder[PlainEncoder::kInput].at(k, n);
    for (int64_t k = 0; k < hidden; ++k) z[n] += before.h[k] * encoder[PlainEncoder::kRecurrent].at(k, n);
  }
  PlainStep step;
  for (int64_t k = 0; k < hidden; ++k) {
    step.i.push_back(sigma(z[k]));
    step.f.push_back(sigma(z[hidden + k]));
    step.g.push_back(std::tanh(z[2 * hidden + k]));
    step.o.push_back(sigma(z[3 * hidden + k]));
    step.c.push_back(step.f[k] * before.c[k] + step.i[k] * step.g[k]);
    step.h.push_back(step.o[k] * std::tanh(step.c[k]));
  }
  return step;
}

// The states before the first character and after each.
inline std::vector<PlainStep> plain_steps(const PlainEncoder& encoder, std::span<const CharacterId> word) {
  PlainStep nothing;
  nothing.c.assign(static_cast<size_t>(encoder.hidden()), 0.0);
  nothing.h = nothing.c;
  std::vector<PlainStep> steps{nothing};
  for (const CharacterId character : word) steps.push_back(plain_step(encoder, character, steps.back()));
  return steps;
}

inline Values plain_vector(const PlainEncoder& encoder, std::span<const CharacterId> word) {
  const Values h = plain_steps(encoder, word).back().h;
  Values out = encoder[PlainEncoder::kOutputBias].values;
  for (int64_t k = 0; k < encoder.hidden(); ++k)
    for (int64_t d = 0; d < encoder.dim(); ++d) out[d] += h[k] * encoder[PlainEncoder::kOutput].at(k, d);
  return out;
}

// Adds the slopes of one step's parameters and turns dh, dc into those of the state before.
inline void plain_step_back(const PlainEncoder& encoder, CharacterId character, const PlainStep& before,
                            const PlainStep& step, Values& dh, Values& dc, PlainEncoder& slopes) {
  const int64_t hidden = encoder.hidden();
  Values dz(4 * hidden), dh_before(hidden);
  for (int64_t k = 0; k < hidden; ++k) {
    const double t = std::tanh(step.c[k]);
    dc[k] += dh[k] * step.o[k] * (1 - t * t);
    dz[k] = dc[k] * step.g[k] * step.i[k] * (1 - step.i[k]);
    dz[hidden + k] = dc[k] * before.c[k] * step.f[k] * (1 - step.f[k]);
    dz[2 * hidden + k] = dc[k] * step.i[k] * (1 - step.g[k] * step.g[k]);
    dz[3 * hidden + k] = dh[k] * t * step.o[k] * (1 - step.o[k]);
    dc[k] *= step.f[k];
  }
  for (int64_t n = 0; n < 4 * hidden; ++n) {
    slopes[PlainEncoder::kBias].at(0, n) += dz[n];
    for (int64_t k = 0; k < hidden; ++k) {
      slopes[PlainEncoder::kRecurrent].at(k, n) += before.h[k] * dz[n];
      dh_before[k] += dz[n] * encoder[PlainEncoder::kRecurrent].at(k, n);
    }
    for (int64_t k = 0; k < encoder[PlainEncoder::kCharacters].cols; ++k) {
      slopes[PlainEncoder::kInput].at(k, n) += encoder[PlainEncoder::kCharacters].at(character, k) * dz[n];
      slopes[PlainEncoder::kCharacters].at(character, k) += dz[n] * encoder[PlainEncoder::kInput].at(k, n);
    }
  }
  dh = dh_before;
}

// Adds the slopes of the parameters, given that of the word's vector.
inline void plain_backward(const PlainEncoder& encoder, std::span<const CharacterId> word, const Values& slope,
                           PlainEncoder& slopes) {
  const std::vector<PlainStep> steps = plain_steps(encoder, word);
  Values dh(encoder.hidden()), dc(encoder.hidden());
  for (int64_t d = 0; d < encoder.dim(); ++d) {
    slopes[PlainEncoder::kOutputBias].at(0, d) += slope[d];
    for (int64_t k = 0; k < encoder.hidden(); ++k) {
      slopes[PlainEncoder::kOutput].at(k, d) += steps.back().h[k] * slope[d];
      dh[k] += slope[d] * encoder[PlainEncoder::kOutput].at(k, d);
    }
  }
  for (size_t t = word.size(); t > 0; --t)
    plain_step_back(encoder, word[t - 1], steps[t - 1], steps[t], dh, dc, slopes);
}

}  // namespace streamvec::testing
