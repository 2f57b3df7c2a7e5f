// A character LSTM or GRU read word by word in double precision by plain loops, and its way back by the chain rule:
// what the trie's is held against. It is itself held against finite differences (trie_lstm_test.cc).
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "streamvec/model/testing.h"
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
    int64_t rows() const { return static_cast<int64_t>(values.size()) / cols; }
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
  int64_t hidden() const { return tables[kOutput].rows(); }
  bool gru() const { return tables[kBias].cols == 3 * hidden(); }
  int64_t dim() const { return tables[kOutputBias].cols; }

  std::array<Table, 6> tables;
};

struct PlainStep {
  Values i, f, g, o, c, h;  // of an LSTM
  Values r, z, n, u;        // of a GRU, with h
};

// What the character and what the state before contribute to the gates.
inline Values input_part(const PlainEncoder& encoder, CharacterId character) {
  Values x = encoder[PlainEncoder::kBias].values;
  for (size_t n = 0; n < x.size(); ++n)
    for (int64_t k = 0; k < encoder[PlainEncoder::kCharacters].cols; ++k)
      x[n] += encoder[PlainEncoder::kCharacters].at(character, k) * encoder[PlainEncoder::kInput].at(k, n);
  return x;
}
inline Values recurrent_part(const PlainEncoder& encoder, const Values& h) {
  Values u(encoder[PlainEncoder::kBias].values.size());
  for (size_t n = 0; n < u.size(); ++n)
    for (size_t k = 0; k < h.size(); ++k) u[n] += h[k] * encoder[PlainEncoder::kRecurrent].at(k, n);
  return u;
}

inline PlainStep gru_step(const Values& x, const Values& u, const PlainStep& before) {
  PlainStep step;
  const size_t hidden = before.h.size();
  for (size_t k = 0; k < hidden; ++k) {
    step.r.push_back(sigma(x[k] + u[k]));
    step.z.push_back(sigma(x[hidden + k] + u[hidden + k]));
    step.u.push_back(u[2 * hidden + k]);
    step.n.push_back(std::tanh(x[2 * hidden + k] + step.r[k] * step.u[k]));
    step.h.push_back((1 - step.z[k]) * step.n[k] + step.z[k] * before.h[k]);
  }
  return step;
}

inline PlainStep lstm_step(const Values& x, const Values& u, const PlainStep& before) {
  PlainStep step;
  const size_t hidden = before.h.size();
  const auto z = [&](size_t gate, size_t k) { return x[gate * hidden + k] + u[gate * hidden + k]; };
  for (size_t k = 0; k < hidden; ++k) {
    step.i.push_back(sigma(z(0, k)));
    step.f.push_back(sigma(z(1, k)));
    step.g.push_back(std::tanh(z(2, k)));
    step.o.push_back(sigma(z(3, k)));
    step.c.push_back(step.f[k] * before.c[k] + step.i[k] * step.g[k]);
    step.h.push_back(step.o[k] * std::tanh(step.c[k]));
  }
  return step;
}

inline PlainStep plain_step(const PlainEncoder& encoder, CharacterId character, const PlainStep& before) {
  const Values x = input_part(encoder, character), u = recurrent_part(encoder, before.h);
  return encoder.gru() ? gru_step(x, u, before) : lstm_step(x, u, before);
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

// Slopes of the gates at one step: of what the character and of what the state before contributes; dh and dc become
// those of the state before, as far as they do not go through `recurrent`.
struct GateSlopes {
  Values input, recurrent;
};

inline GateSlopes lstm_step_back(const PlainStep& before, const PlainStep& step, Values& dh, Values& dc) {
  const size_t hidden = dh.size();
  Values dz(4 * hidden);
  for (size_t k = 0; k < hidden; ++k) {
    const double t = std::tanh(step.c[k]);
    dc[k] += dh[k] * step.o[k] * (1 - t * t);
    dz[k] = dc[k] * step.g[k] * step.i[k] * (1 - step.i[k]);
    dz[hidden + k] = dc[k] * before.c[k] * step.f[k] * (1 - step.f[k]);
    dz[2 * hidden + k] = dc[k] * step.i[k] * (1 - step.g[k] * step.g[k]);
    dz[3 * hidden + k] = dh[k] * t * step.o[k] * (1 - step.o[k]);
    dc[k] *= step.f[k];
    dh[k] = 0;
  }
  return {dz, dz};
}

inline GateSlopes gru_step_back(const PlainStep& before, const PlainStep& step, Values& dh) {
  const size_t hidden = dh.size();
  GateSlopes slopes{Values(3 * hidden), Values(3 * hidden)};
  for (size_t k = 0; k < hidden; ++k) {
    const double dn = dh[k] * (1 - step.z[k]) * (1 - step.n[k] * step.n[k]);
    slopes.input[k] = slopes.recurrent[k] = dn * step.u[k] * step.r[k] * (1 - step.r[k]);
    slopes.input[hidden + k] = slopes.recurrent[hidden + k] =
        dh[k] * (before.h[k] - step.n[k]) * step.z[k] * (1 - step.z[k]);
    slopes.input[2 * hidden + k] = dn;
    slopes.recurrent[2 * hidden + k] = dn * step.r[k];
    dh[k] *= step.z[k];
  }
  return slopes;
}

// Adds the slopes of one step's parameters and turns dh, dc into those of the state before.
inline void plain_step_back(const PlainEncoder& encoder, CharacterId character, const PlainStep& before,
                            const PlainStep& step, Values& dh, Values& dc, PlainEncoder& slopes) {
  const GateSlopes gates = encoder.gru() ? gru_step_back(before, step, dh) : lstm_step_back(before, step, dh, dc);
  for (size_t n = 0; n < gates.input.size(); ++n) {
    slopes[PlainEncoder::kBias].at(0, n) += gates.input[n];
    for (size_t k = 0; k < dh.size(); ++k) {
      slopes[PlainEncoder::kRecurrent].at(k, n) += before.h[k] * gates.recurrent[n];
      dh[k] += gates.recurrent[n] * encoder[PlainEncoder::kRecurrent].at(k, n);
    }
    for (int64_t k = 0; k < encoder[PlainEncoder::kCharacters].cols; ++k) {
      slopes[PlainEncoder::kInput].at(k, n) += encoder[PlainEncoder::kCharacters].at(character, k) * gates.input[n];
      slopes[PlainEncoder::kCharacters].at(character, k) += gates.input[n] * encoder[PlainEncoder::kInput].at(k, n);
    }
  }
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
