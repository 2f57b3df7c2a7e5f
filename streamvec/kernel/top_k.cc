// The products are taken in register tiles of kTileQueries queries x kTileVectors vectors of rows. Rows are packed a
// panel at a time so that one vector holds the same column of neighbouring rows: a tile then needs no horizontal sum,
// and each product is summed in the order of the columns.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)  // no arrays of vectors there
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "streamvec/kernel/top_k.cc"
#include "streamvec/kernel/top_k.h"

#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "streamvec/kernel/top_k_selection.h"

HWY_BEFORE_NAMESPACE();
namespace streamvec::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
using View = MatrixView<const float>;

// 24 sums for 32 vector registers (AVX-512), 12 for 16.
constexpr int64_t kTileQueries = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int64_t kTileVectors = 3;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));
constexpr int64_t kPanelRows = kTileVectors * kLanes;
constexpr int64_t kFewQueries = 10;   // up to here packing costs more than horizontal sums
constexpr int64_t kQueryBlock = 512;  // queries that stay in the second-level cache
constexpr int64_t kScanPanels = 8;    // panels of products kept between the two steps of best_analogies
constexpr int64_t kScanRows = kScanPanels * kPanelRows;
constexpr float kCosMulEpsilon = 1e-3f;
constexpr float kMasked = -1e6f;  // in place of a cosine: such a row loses under both rules

// packed[column * lanes + i] = row(begin + i)[column], zeros past the last row.
HWY_INLINE void pack(View view, int64_t begin, int64_t lanes, float* HWY_RESTRICT packed) {
  const int64_t count = std::min(lanes, view.rows - begin);
  if (count < lanes) std::fill_n(packed, lanes * view.cols, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    const float* row = view.row(begin + i);
    for (int64_t column = 0; column < view.cols; ++column) packed[column * lanes + i] = row[column];
  }
}

// out[q * stride + i] = query q . row i, for one packed group of queries and one packed panel of rows.
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT rows, const float* HWY_RESTRICT queries, int64_t cols,
                              int64_t stride, float* HWY_RESTRICT out) {
  const Tag tag;
  Vector sums[kTileQueries][kTileVectors];
#pragma GCC unroll 8
  for (auto& query_sums : sums)
#pragma GCC unroll 3
    for (Vector& sum : query_sums) sum = hn::Zero(tag);
  for (int64_t column = 0; column < cols; ++column, rows += kPanelRows, queries += kTileQueries) {
    const Vector r0 = hn::Load(tag, rows);
    const Vector r1 = hn::Load(tag, rows + kLanes);
    const Vector r2 = hn::Load(tag, rows + 2 * kLanes);
#pragma GCC unroll 8
    for (int64_t q = 0; q < kTileQueries; ++q) {
      const Vector value = hn::Set(tag, queries[q]);
      sums[q][0] = hn::MulAdd(value, r0, sums[q][0]);
      sums[q][1] = hn::MulAdd(value, r1, sums[q][1]);
      sums[q][2] = hn::MulAdd(value, r2, sums[q][2]);
    }
  }
#pragma GCC unroll 8
  for (int64_t q = 0; q < kTileQueries; ++q)
#pragma GCC unroll 3
    for (int64_t v = 0; v < kTileVectors; ++v) hn::Store(sums[q][v], tag, out + q * stride + v * kLanes);
}

// Queries in groups of kTileQueries, packed for multiply_tile.
class PackedQueries {
 public:
  explicit PackedQueries(View queries)
      : cols_(queries.cols),
        groups_((queries.rows + kTileQueries - 1) / kTileQueries),
        packed_(hwy::AllocateAligned<float>(static_cast<size_t>(std::max<int64_t>(1, groups_ * group_size())))) {
    for (int64_t g = 0; g < groups_; ++g)
      pack(queries, g * kTileQueries, kTileQueries, packed_.get() + g * group_size());
  }
  int64_t groups() const { return groups_; }
  const float* group(int64_t g) const { return packed_.get() + g * group_size(); }

 private:
  int64_t group_size() const { return kTileQueries * cols_; }
  int64_t cols_, groups_;
  hwy::AlignedFreeUniquePtr<float[]> packed_;
};

// `scores` holds whole vectors; only the first `count` of them are rows.
HWY_INLINE void offer_all(const float* HWY_RESTRICT scores, int64_t count, int64_t first_row, TopKSelection& best) {
  const Tag tag;
  for (int64_t i = 0; i < count; i += kLanes) {
    if (hn::AllFalse(tag, hn::Gt(hn::Load(tag, scores + i), hn::Set(tag, best.threshold())))) continue;
    for (int64_t j = i; j < std::min(i + kLanes, count); ++j)
      best.offer(static_cast<int32_t>(first_row + j), scores[j]);
  }
}

void search_many(View rows, View queries, std::span<TopKSelection> best) {
  const PackedQueries packed(queries);
  const auto panel = hwy::AllocateAligned<float>(static_cast<size_t>(kPanelRows * rows.cols));
  HWY_ALIGN float tile[kTileQueries * kPanelRows];
  for (int64_t row = 0; row < rows.rows; row += kPanelRows) {
    pack(rows, row, kPanelRows, panel.get());
    for (int64_t g = 0; g < packed.groups(); ++g) {
      multiply_tile(panel.get(), packed.group(g), rows.cols, kPanelRows, tile);
      const int64_t count = std::min(kTileQueries, queries.rows - g * kTileQueries);
      for (int64_t q = 0; q < count; ++q)
        offer_all(tile + q * kPanelRows, std::min(kPanelRows, rows.rows - row), row,
                  best[static_cast<size_t>(g * kTileQueries + q)]);
    }
  }
}

// Four rows at once keep four sums in flight.
HWY_INLINE void multiply_rows(View rows, int64_t begin, int64_t count, const float* HWY_RESTRICT query, float* scores) {
  const Tag tag;
  const int64_t whole = rows.cols / kLanes * kLanes;
  const auto rest = hn::FirstN(tag, static_cast<size_t>(rows.cols - whole));
  for (int64_t i = 0; i < count; i += 4) {
    const float* row[4];
    for (int64_t r = 0; r < 4; ++r) row[r] = rows.row(begin + std::min(i + r, count - 1));
    Vector s0 = hn::Zero(tag), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t column = 0; column < whole; column += kLanes) {
      const Vector value = hn::LoadU(tag, query + column);
      s0 = hn::MulAdd(value, hn::LoadU(tag, row[0] + column), s0);
      s1 = hn::MulAdd(value, hn::LoadU(tag, row[1] + column), s1);
      s2 = hn::MulAdd(value, hn::LoadU(tag, row[2] + column), s2);
      s3 = hn::MulAdd(value, hn::LoadU(tag, row[3] + column), s3);
    }
    if (whole < rows.cols) {
      const Vector value = hn::MaskedLoad(rest, tag, query + whole);
      s0 = hn::MulAdd(value, hn::MaskedLoad(rest, tag, row[0] + whole), s0);
      s1 = hn::MulAdd(value, hn::MaskedLoad(rest, tag, row[1] + whole), s1);
      s2 = hn::MulAdd(value, hn::MaskedLoad(rest, tag, row[2] + whole), s2);
      s3 = hn::MulAdd(value, hn::MaskedLoad(rest, tag, row[3] + whole), s3);
    }
    scores[i] = hn::GetLane(hn::SumOfLanes(tag, s0));
    scores[i + 1] = hn::GetLane(hn::SumOfLanes(tag, s1));
    scores[i + 2] = hn::GetLane(hn::SumOfLanes(tag, s2));
    scores[i + 3] = hn::GetLane(hn::SumOfLanes(tag, s3));
  }
}

float product(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, int64_t cols) {
  const Tag tag;
  Vector a = hn::Zero(tag), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= cols; i += 2 * kLanes) {
    a = hn::MulAdd(hn::LoadU(tag, x + i), hn::LoadU(tag, y + i), a);
    b = hn::MulAdd(hn::LoadU(tag, x + i + kLanes), hn::LoadU(tag, y + i + kLanes), b);
  }
  for (; i < cols; i += kLanes) {
    const auto rest = hn::FirstN(tag, static_cast<size_t>(std::min(kLanes, cols - i)));
    a = hn::MulAdd(hn::MaskedLoad(rest, tag, x + i), hn::MaskedLoad(rest, tag, y + i), a);
  }
  return hn::GetLane(hn::SumOfLanes(tag, hn::Add(a, b)));
}

void search_few(View rows, View queries, std::span<TopKSelection> best) {
  constexpr int64_t kBlock = 256;
  HWY_ALIGN float scores[kBlock];
  for (int64_t row = 0; row < rows.rows; row += kBlock) {
    const int64_t count = std::min(kBlock, rows.rows - row);
    for (int64_t q = 0; q < queries.rows; ++q) {
      multiply_rows(rows, row, count, queries.row(q), scores);
      offer_all(scores, count, row, best[static_cast<size_t>(q)]);
    }
  }
}

void search(View rows, View queries, std::span<TopKSelection> best) {
  if (queries.rows <= kFewQueries) return search_few(rows, queries, best);
  for (int64_t q = 0; q < queries.rows; q += kQueryBlock) {
    const int64_t count = std::min(kQueryBlock, queries.rows - q);
    search_many(rows, {queries.row(q), count, queries.cols, queries.stride}, best.subspan(static_cast<size_t>(q)));
  }
}

// `b` may hold masked rows. `a` and `c` may be the same memory as `b`, so they are kept where the mask cannot cancel.
HWY_INLINE Vector cos_add(const float* a, const float* b, const float* c, int64_t i) {
  const Tag tag;
  const Vector minus = hn::Max(hn::Load(tag, a + i), hn::Set(tag, -2.0f));
  return hn::Add(hn::Sub(hn::Load(tag, b + i), minus), hn::Load(tag, c + i));
}

HWY_INLINE Vector cos_mul(const float* a, const float* b, const float* c, int64_t i) {
  const Tag tag;
  const Vector half = hn::Set(tag, 0.5f), tiny = hn::Set(tag, 1e-6f);
  const Vector sa = hn::Max(hn::MulAdd(half, hn::Load(tag, a + i), half), tiny);
  const Vector sb = hn::MulAdd(half, hn::Load(tag, b + i), half);
  const Vector sc = hn::Max(hn::MulAdd(half, hn::Load(tag, c + i), half), tiny);
  return hn::Div(hn::Mul(sb, sc), hn::Add(sa, hn::Set(tag, kCosMulEpsilon)));
}

// The best scores of a question so far. At first between a masked row (at most -1e6 + 4, and -5e5 * 1e-6 / 1.001) and
// every other (at least -3, and -1e-4 by rounding).
struct Standing {
  float add = -10, mul = -0.01f;
};

// The first row of the block whose score is the block's greatest becomes the answer if it beats what stood.
template <class Score>
HWY_INLINE void raise(Score score, int64_t first_row, float& standing, int32_t& answer) {
  const Tag tag;
  Vector greatest = hn::Set(tag, standing);
  for (int64_t i = 0; i < kScanRows; i += kLanes) greatest = hn::Max(score(i), greatest);
  const float best = hn::GetLane(hn::MaxOfLanes(tag, greatest));
  if (!(best > standing)) return;
  standing = best;
  for (int64_t i = 0; i < kScanRows; i += kLanes) {
    const intptr_t lane = hn::FindFirstTrue(tag, hn::Eq(score(i), hn::Set(tag, best)));
    if (lane < 0) continue;
    answer = static_cast<int32_t>(first_row + i + lane);
    return;
  }
}

// `products` has kScanRows values for each distinct word, those of the rows from first_row on.
void scan_block(float* products, std::span<const AnalogyQuestion> questions, std::span<const AnalogyQuestion> places,
                int64_t first_row, std::span<Standing> standings, std::span<AnalogyAnswer> answers) {
  for (size_t n = 0; n < questions.size(); ++n) {
    const float* a = products + places[n].a * kScanRows;
    float* b = products + places[n].b * kScanRows;
    const float* c = products + places[n].c * kScanRows;
    const int64_t own[3] = {questions[n].a - first_row, questions[n].b - first_row, questions[n].c - first_row};
    float kept[3] = {};
    for (int i = 0; i < 3; ++i)
      if (own[i] >= 0 && own[i] < kScanRows) kept[i] = std::exchange(b[own[i]], kMasked);
    raise([=](int64_t i) { return cos_add(a, b, c, i); }, first_row, standings[n].add, answers[n].cos_add);
    raise([=](int64_t i) { return cos_mul(a, b, c, i); }, first_row, standings[n].mul, answers[n].cos_mul);
    for (int i = 2; i >= 0; --i)
      if (own[i] >= 0 && own[i] < kScanRows) b[own[i]] = kept[i];
  }
}

// `words` are the distinct rows named; `places` are the questions with each row replaced by its place in `words`.
void answer_analogies(View rows, View words, std::span<const AnalogyQuestion> questions,
                      std::span<const AnalogyQuestion> places, std::span<AnalogyAnswer> answers) {
  const PackedQueries packed(words);
  const auto panel = hwy::AllocateAligned<float>(static_cast<size_t>(kPanelRows * rows.cols));
  const auto products = hwy::AllocateAligned<float>(static_cast<size_t>(packed.groups() * kTileQueries * kScanRows));
  std::vector<Standing> standings(questions.size());
  for (int64_t first = 0; first < rows.rows; first += kScanRows) {
    for (int64_t p = 0; p < std::min(kScanRows, rows.rows - first); p += kPanelRows) {
      pack(rows, first + p, kPanelRows, panel.get());
      for (int64_t g = 0; g < packed.groups(); ++g)
        multiply_tile(panel.get(), packed.group(g), rows.cols, kScanRows,
                      products.get() + g * kTileQueries * kScanRows + p);
    }
    for (int64_t i = rows.rows - first; i < kScanRows; ++i)  // rows that are not there
      for (int64_t word = 0; word < words.rows; ++word) products[static_cast<size_t>(word * kScanRows + i)] = kMasked;
    scan_block(products.get(), questions, places, first, standings, answers);
  }
}

}  // namespace streamvec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace streamvec {
namespace {

HWY_EXPORT(search);
HWY_EXPORT(answer_analogies);
HWY_EXPORT(product);

using Excluded = std::span<const std::span<const int32_t>>;

std::vector<TopKSelection> make_selections(int64_t queries, Excluded excluded, int32_t k) {
  std::vector<TopKSelection> best;
  best.reserve(static_cast<size_t>(queries));
  for (size_t q = 0; q < static_cast<size_t>(queries); ++q)
    best.emplace_back(k, excluded.empty() ? std::span<const int32_t>() : excluded[q]);
  return best;
}

void write_all(std::span<TopKSelection> best, int32_t k, std::span<Hit> hits) {
  for (size_t q = 0; q < best.size(); ++q)
    best[q].write(hits.subspan(q * static_cast<size_t>(k), static_cast<size_t>(k)));
}

void check_arguments(MatrixView<const float> rows, MatrixView<const float> queries, Excluded excluded, int32_t k,
                     std::span<Hit> hits) {
  STREAMVEC_CHECK(k > 0);
  STREAMVEC_CHECK_EQ(queries.cols, rows.cols);
  STREAMVEC_CHECK_EQ(hits.size(), static_cast<size_t>(queries.rows * k));
  STREAMVEC_CHECK(excluded.empty() || excluded.size() == static_cast<size_t>(queries.rows));
}

float dot(const float* x, const float* y, int64_t cols) {
  float sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += x[i] * y[i];
  return sum;
}

// The distinct rows of the questions, rising.
std::vector<int32_t> distinct_rows(std::span<const AnalogyQuestion> questions) {
  std::vector<int32_t> rows;
  for (const AnalogyQuestion& question : questions) rows.insert(rows.end(), {question.a, question.b, question.c});
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

int32_t place_of(const std::vector<int32_t>& distinct, int32_t row) {
  return static_cast<int32_t>(std::lower_bound(distinct.begin(), distinct.end(), row) - distinct.begin());
}

}  // namespace

void top_k(MatrixView<const float> rows, MatrixView<const float> queries, Excluded excluded, int32_t k,
           std::span<Hit> hits) {
  check_arguments(rows, queries, excluded, k, hits);
  std::vector<TopKSelection> best = make_selections(queries.rows, excluded, k);
  HWY_DYNAMIC_DISPATCH(search)(rows, queries, best);
  write_all(best, k, hits);
}

float inner_product(const float* x, const float* y, int64_t cols) {
  return HWY_DYNAMIC_DISPATCH(product)(x, y, cols);
}

void top_k_reference(MatrixView<const float> rows, MatrixView<const float> queries, Excluded excluded, int32_t k,
                     std::span<Hit> hits) {
  check_arguments(rows, queries, excluded, k, hits);
  std::vector<TopKSelection> best = make_selections(queries.rows, excluded, k);
  for (int64_t q = 0; q < queries.rows; ++q)
    for (int64_t row = 0; row < rows.rows; ++row)
      best[static_cast<size_t>(q)].offer(static_cast<int32_t>(row), dot(rows.row(row), queries.row(q), rows.cols));
  write_all(best, k, hits);
}

void best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                    std::span<AnalogyAnswer> answers) {
  STREAMVEC_CHECK_EQ(answers.size(), questions.size());
  if (questions.empty()) return;
  const std::vector<int32_t> distinct = distinct_rows(questions);
  std::vector<float> words;
  words.reserve(distinct.size() * static_cast<size_t>(rows.cols));
  for (const int32_t row : distinct) words.insert(words.end(), rows.row(row), rows.row(row) + rows.cols);
  std::vector<AnalogyQuestion> places;
  places.reserve(questions.size());
  for (const AnalogyQuestion& question : questions)
    places.push_back({place_of(distinct, question.a), place_of(distinct, question.b), place_of(distinct, question.c)});
  std::fill(answers.begin(), answers.end(), AnalogyAnswer{});
  const MatrixView<const float> view{words.data(), static_cast<int64_t>(distinct.size()), rows.cols, rows.cols};
  HWY_DYNAMIC_DISPATCH(answer_analogies)(rows, view, questions, places, answers);
}

void best_analogies_reference(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                              std::span<AnalogyAnswer> answers) {
  STREAMVEC_CHECK_EQ(answers.size(), questions.size());
  const auto shifted = [](float cosine) { return (1 + cosine) / 2; };
  for (size_t n = 0; n < questions.size(); ++n) {
    const int32_t own[3] = {questions[n].a, questions[n].b, questions[n].c};
    TopKSelection add(1, own), mul(1, own);
    for (int32_t row = 0; row < rows.rows; ++row) {
      const float a = dot(rows.row(row), rows.row(own[0]), rows.cols);
      const float b = dot(rows.row(row), rows.row(own[1]), rows.cols);
      const float c = dot(rows.row(row), rows.row(own[2]), rows.cols);
      add.offer(row, b - a + c);
      mul.offer(row, shifted(b) * shifted(c) / (shifted(a) + 1e-3f));
    }
    Hit best_add, best_mul;
    add.write({&best_add, 1});
    mul.write({&best_mul, 1});
    answers[n] = {best_add.row, best_mul.row};
  }
}

}  // namespace streamvec
#endif  // HWY_ONCE
