#include "streamvec/kernel/int8_lstm.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/kernel/amx_tiles.h"
#include "streamvec/kernel/gate_polynomials.h"
#include "streamvec/kernel/lstm_cell.h"

namespace streamvec {
namespace {

constexpr int32_t kUnits = 16;  // columns of a tile of sums
constexpr int32_t kRows = 16;   // parents at a time
constexpr int32_t kDepth = 64;  // of a tile of weights
constexpr int32_t kTile = kRows * kDepth;
constexpr float kUnit = 127;  // states are numbers of 127ths
// One function serves all: T(u) = tanh(u / 2) is 2 sigma(u) - 1, and tanh(z) is T(2 z). With C = 2 c a cell is
//   C = ((1 + T(f)) C + 2 (1 + T(i)) T(2 g)) / 2,  2 h = (1 + T(o)) T(C)
constexpr int32_t kTanhGate = 2;  // g

int32_t depth_tiles(int32_t hidden) {
  return (hidden + kDepth - 1) / kDepth;
}

float scale_of(int32_t gate) {
  return gate == kTanhGate ? 2.0f : 1.0f;
}

}  // namespace

// A tile of weights has four neighbours of the depth in each word, and a row of words for each four.
void Int8LstmWeights::pack(MatrixView<const float> recurrent) {
  hidden = static_cast<int32_t>(recurrent.rows);
  const int32_t depth = depth_tiles(hidden);
  int8_t* tile = tiles.reserve(static_cast<size_t>(hidden / kUnits * depth) * kLstmGates * kTile);
  float* unit = units.reserve(static_cast<size_t>(hidden) * kLstmGates);
  std::vector<float> largest(static_cast<size_t>(recurrent.cols), 0.0f);
  for (int64_t i = 0; i < recurrent.rows; ++i)
    for (int64_t j = 0; j < recurrent.cols; ++j)
      largest[static_cast<size_t>(j)] = std::max(largest[static_cast<size_t>(j)], std::abs(recurrent.row(i)[j]));
  const auto rounded = [&](int64_t row, int64_t column) -> int8_t {
    if (row >= recurrent.rows || largest[static_cast<size_t>(column)] == 0) return 0;
    return static_cast<int8_t>(std::lrint(recurrent.row(row)[column] / largest[static_cast<size_t>(column)] * kUnit));
  };
  for (int32_t first = 0; first < hidden; first += kUnits) {
    for (int32_t k = 0; k < depth; ++k)
      for (int32_t gate = 0; gate < kLstmGates; ++gate, tile += kTile)
        for (int32_t i = 0; i < kTile; ++i)
          tile[i] = rounded(k * kDepth + i / kDepth * 4 + i % 4, gate * hidden + first + i % kDepth / 4);
    for (int32_t gate = 0; gate < kLstmGates; ++gate)
      for (int32_t i = 0; i < kUnits; ++i)
        *unit++ = scale_of(gate) * largest[static_cast<size_t>(gate * hidden + first + i)] / (kUnit * kUnit);
  }
}

void order_int8_lstm_input(const float* row, int32_t hidden, float* to) {
  for (int32_t first = 0; first < hidden; first += kUnits)
    for (int32_t gate = 0; gate < kLstmGates; ++gate)
      for (int32_t i = 0; i < kUnits; ++i) *to++ = scale_of(gate) * row[gate * hidden + first + i];
}

void Int8LstmStates::reserve(int32_t rows, int32_t hidden) {
  rows_ = ((rows + kRows - 1) / kRows | 1) * kRows;  // odd, so that tiles of one product share few places of the caches
  hidden_ = hidden;
  h_ = h_memory_.reserve(static_cast<size_t>(rows_) * static_cast<size_t>(depth_tiles(hidden) * kDepth));
  c_ = c_memory_.reserve(static_cast<size_t>(rows_) * static_cast<size_t>(hidden));
}

void Int8LstmStates::set_zero() {
  std::fill_n(h_, int64_t{rows_} * depth_tiles(hidden_) * kDepth, int8_t{0});
  std::fill_n(c_, int64_t{rows_} * hidden_, uint16_t{0});
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,amx-tile,amx-int8")
namespace {

// The children of 16 parents: nodes of each run up to these.
struct Family {
  int32_t inner_end, leaf_end;
};

void find_families(const Int8LstmLevel& level, std::vector<Family>& families) {
  for (const Int8LstmLevel::Run* run : {&level.inner, &level.leaves})
    STREAMVEC_CHECK(std::is_sorted(run->parents.begin(), run->parents.end()));
  families.clear();
  int32_t inner = 0, leaf = 0;
  const auto advance = [](const Int8LstmLevel::Run& run, int32_t node, int32_t parent_end) {
    const auto size = static_cast<int32_t>(run.parents.size());
    while (node < size && run.parents[static_cast<size_t>(node)] < parent_end) ++node;
    return node;
  };
  for (int32_t row = 0; row < level.parents; row += kRows) {
    const int32_t parent_end = level.first_parent + std::min(row + kRows, level.parents);
    inner = advance(level.inner, inner, parent_end);
    leaf = advance(level.leaves, leaf, parent_end);
    families.push_back({inner, leaf});
  }
}

// The sums of 16 parents with the gates of 16 units.
class Product {
 public:
  Product(const int8_t* states, int64_t states_step, const int8_t* weights, int32_t depth)
      : states_(states), states_step_(states_step), weights_(weights), left_(depth * kLstmGates) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  // One gate of the next 64: as long as the cells of a child take.
  void step() {
    if (left_ == 0) return;
    switch (--left_ % kLstmGates) {
      case 3:
        _tile_stream_loadd(4, states_, kDepth);  // once for these units: the weights are to stay in the first cache
        _tile_loadd(5, weights_, kDepth);
        _tile_dpbssd(0, 4, 5);
        break;
      case 2:
        _tile_loadd(6, weights_ + kTile, kDepth);
        _tile_dpbssd(1, 4, 6);
        break;
      case 1:
        _tile_loadd(5, weights_ + 2 * kTile, kDepth);
        _tile_dpbssd(2, 4, 5);
        break;
      case 0:
        _tile_loadd(6, weights_ + 3 * kTile, kDepth);
        _tile_dpbssd(3, 4, 6);
        states_ += states_step_;
        weights_ += kLstmGates * kTile;
    }
  }
  // By row and gate.
  void finish(int32_t* sums) {
    while (left_ > 0) step();
    constexpr int64_t kStride = kLstmGates * kUnits * sizeof(int32_t);
    _tile_stored(0, sums, kStride);
    _tile_stored(1, sums + kUnits, kStride);
    _tile_stored(2, sums + 2 * kUnits, kStride);
    _tile_stored(3, sums + 3 * kUnits, kStride);
  }

 private:
  const int8_t* states_;
  const int64_t states_step_;
  const int8_t* weights_;
  int32_t left_;
};

// T, above.
class GateTable {
 public:
  explicit GateTable(const GateQuadratics& from)
      : per_unit_(_mm512_set1_ps(from.per_unit)), limit_(_mm512_set1_ps(from.limit)) {
    for (int k = 0; k < 3; ++k) {
      low_[k] = _mm512_load_ps(from.coefficients[k]);
      high_[k] = _mm512_load_ps(from.coefficients[k] + 16);
    }
  }
  __m512 operator()(__m512 x) const {
    const __m512 y = _mm512_range_ps(x, limit_, 0b1010);  // the smaller of |x| and the limit
    // Added to 2^23 a number leaves its nearest whole one in the lowest bits.
    const __m512i at = _mm512_castps_si512(_mm512_fmadd_ps(y, per_unit_, _mm512_set1_ps(8388608.0f)));
    const auto look = [&](int k) { return _mm512_permutex2var_ps(low_[k], at, high_[k]); };
    const __m512 p = _mm512_fmadd_ps(_mm512_fmadd_ps(look(2), y, look(1)), y, look(0));
    constexpr int kFirstXorBoth = 0x78;  // p ^ (x & sign)
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(p), _mm512_castps_si512(x),
                                                         _mm512_set1_epi32(INT32_MIN), kFirstXorBoth));
  }

 private:
  __m512 low_[3], high_[3], per_unit_, limit_;
};

// Cells of 16 units.
class Cells {
 public:
  Cells(const Int8LstmWeights& weights, const Int8LstmLevel& level, int32_t unit)
      : level_(level), value_(quadratics_of_tanh_of_half()), unit_(unit) {
    for (int gate = 0; gate < kLstmGates; ++gate)
      scale_[gate] = _mm512_load_ps(weights.units.data() + unit * kLstmGates + gate * kUnits);
    alignas(64) int8_t lowest[64] = {};
    for (int8_t i = 0; i < kUnits; ++i) lowest[i] = static_cast<int8_t>(4 * i);
    lowest_ = _mm512_load_si512(lowest);
    c_before_ = level.before->c(unit);
    c_ = level.after->c(unit);
    h_ = level.after->h(unit / kDepth * kDepth) + unit % kDepth;
    ends_ = reinterpret_cast<uint16_t*>(level.ends.data) + unit;
    ends_stride_ = level.ends.stride / static_cast<int64_t>(sizeof(uint16_t));
  }

  // `sums`: of the parents from `first` on.
  void inner(int32_t node, const int32_t* sums, int32_t first) const {
    const State state = step(level_.inner, node, sums, first);
    _mm256_store_si256(reinterpret_cast<__m256i*>(c_ + node * kUnits),
                       _mm512_cvtps_ph(state.twice_c, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    // Added to 1.5 * 2^23 a number leaves its nearest whole one in the lowest bits.
    const __m512 whole = _mm512_fmadd_ps(state.twice_h, _mm512_set1_ps(kUnit / 2), _mm512_set1_ps(12582912.0f));
    const __m512i bytes = _mm512_permutexvar_epi8(lowest_, _mm512_castps_si512(whole));
    _mm_store_si128(reinterpret_cast<__m128i*>(h_ + node * kDepth), _mm512_castsi512_si128(bytes));
    give_end(level_.inner_ends[static_cast<size_t>(node)], state.twice_h);
  }
  void leaf(int32_t node, const int32_t* sums, int32_t first) const {
    give_end(level_.first_leaf_end + node, step(level_.leaves, node, sums, first).twice_h);
  }

 private:
  struct State {
    __m512 twice_c, twice_h;
  };

  State step(const Int8LstmLevel::Run& run, int32_t node, const int32_t* sums, int32_t first) const {
    const int32_t parent = run.parents[static_cast<size_t>(node)] - level_.first_parent;
    const float* input = level_.input.row(run.characters[static_cast<size_t>(node)]) + unit_ * kLstmGates;
    const auto gate = [&](int32_t number) {
      const int32_t* sum = sums + ((parent - first) * kLstmGates + number) * kUnits;
      return value_(_mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sum)), scale_[number],
                                    _mm512_load_ps(input + number * kUnits)));
    };
    const __m512 i = gate(0), f = gate(1), g = gate(2), o = gate(3);
    const __m512 before =
        _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(c_before_ + parent * kUnits)));
    State state;
    state.twice_c = _mm512_fmadd_ps(_mm512_fmadd_ps(f, before, before), _mm512_set1_ps(0.5f), _mm512_fmadd_ps(i, g, g));
    const __m512 t = value_(state.twice_c);
    state.twice_h = _mm512_fmadd_ps(o, t, t);
    return state;
  }
  void give_end(int32_t row, __m512 twice_h) const {
    const __m256bh rounded = _mm512_cvtneps_pbh(twice_h);
    _mm256_store_si256(reinterpret_cast<__m256i*>(ends_ + row * ends_stride_),
                       reinterpret_cast<const __m256i&>(rounded));
  }

  const Int8LstmLevel& level_;
  const GateTable value_;
  const int32_t unit_;
  __m512 scale_[kLstmGates];
  __m512i lowest_;  // where the lowest bytes of sixteen words are
  const uint16_t* c_before_;
  uint16_t *c_, *ends_;
  int8_t* h_;
  int64_t ends_stride_;
};

}  // namespace

void step_int8_lstm(const Int8LstmWeights& weights, const Int8LstmLevel& level) {
  configure_amx_tiles();
  thread_local std::vector<Family> families;
  find_families(level, families);
  const int32_t depth = depth_tiles(weights.hidden);
  alignas(64) int32_t sums[2][kRows * kLstmGates * kUnits];
  for (int32_t unit = 0; unit < weights.hidden; unit += kUnits) {
    const Cells cells(weights, level, unit);
    const auto product_of = [&](size_t family) {
      return Product(level.before->h(0) + static_cast<int64_t>(family) * kTile, int64_t{level.before->rows()} * kDepth,
                     weights.tiles.data() + int64_t{unit} / kUnits * depth * kLstmGates * kTile,
                     family < families.size() ? depth : 0);
    };
    product_of(0).finish(sums[0]);
    int32_t inner = 0, leaf = 0;
    for (size_t family = 0; family < families.size(); ++family) {
      const int32_t* mine = sums[family % 2];
      const auto first = static_cast<int32_t>(family) * kRows;
      Product next = product_of(family + 1);
      for (; inner < families[family].inner_end; ++inner) {
        cells.inner(inner, mine, first);
        next.step();
      }
      for (; leaf < families[family].leaf_end; ++leaf) {
        cells.leaf(leaf, mine, first);
        next.step();
      }
      if (family + 1 < families.size()) next.finish(sums[(family + 1) % 2]);
    }
  }
}
#pragma GCC pop_options

}  // namespace streamvec
