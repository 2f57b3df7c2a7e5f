// The numbers of Muon (optim/muon.h), for the CPU and for a card.
#pragma once

#include <cstdint>

namespace streamvec {

struct MuonRates {
  float momentum = 0.9f;  // less: fewer steps are enough to learn something, and each is less sure
  // The root of a step's mean square is this, times the rate: that of Adam's, so that rates are alike.
  float length = 0.2f;
  int32_t iterations = 5;
  int64_t band_max = 128;  // rows of a band at most; more: a little surer, and time goes with the square
};

// a, b and c of a X + (b A + c A A) X: chosen by Jordan so that small singular values grow fastest, not so that 1 is
// reached exactly.
constexpr float kMuonLinear = 3.4445f, kMuonCubic = -4.7750f, kMuonQuintic = 2.0315f;
constexpr double kMuonSquareMin = 1e-30;  // of slopes that are all 0
constexpr double kMuonSquareMost = 1e30;  // of slopes that mean anything

}  // namespace streamvec
