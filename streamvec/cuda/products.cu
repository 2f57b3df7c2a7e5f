// Rows are taken in pieces: the product of all queries with a piece of the rows by cuBLAS, then a kernel that looks for
// the best, a block of threads for each query or question. What was best so far waits on the card for the next piece.
#include <algorithm>
#include <optional>
#include <vector>

#include "streamvec/cuda/blas.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/products.h"

namespace streamvec::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPieceRows = 1 << 16, kPieceQueries = 1 << 10;
constexpr int64_t kGramRows = 1 << 17;
constexpr int kNearestMax = CardProducts::kNearestMax;

// A Hit that shared memory can hold.
struct Found {
  int32_t row;  // -1: none
  float score;
};

// Of equal scores the lower row. No score is NaN.
__device__ bool better(const Found& a, const Found& b) {
  if (a.row < 0) return false;
  if (b.row < 0) return true;
  return a.score > b.score || (a.score == b.score && a.row < b.row);
}

// The best of all threads' hits, in every thread.
__device__ Found best_of_block(Found hit) {
  __shared__ Found hits[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    const Found other{__shfl_xor_sync(~0u, hit.row, step), __shfl_xor_sync(~0u, hit.score, step)};
    if (better(other, hit)) hit = other;
  }
  __syncthreads();  // whoever reads the last call's has done so
  if (threadIdx.x % 32 == 0) hits[threadIdx.x / 32] = hit;
  __syncthreads();
  hit = hits[0];
  for (int i = 1; i < kThreads / 32; ++i)
    if (better(hits[i], hit)) hit = hits[i];
  return hit;
}

__device__ Found nothing() {
  return {-1, -INFINITY};
}

__global__ void exclude_kernel(const int2* excluded, int32_t count, int64_t first_row, int64_t rows, float* products) {
  const auto i = static_cast<int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= count) return;
  const int64_t row = excluded[i].y - first_row;
  if (row >= 0 && row < rows) products[excluded[i].x * rows + row] = NAN;
}

// hits [queries][k], best first: those of rows before, in; those and the piece's, out.
__global__ void nearest_kernel(const float* products, int64_t first_row, int64_t rows, int32_t k, Found* hits) {
  __shared__ Found before[kNearestMax];
  const float* scores = products + blockIdx.x * rows;
  Found* own = hits + int64_t{blockIdx.x} * k;
  if (static_cast<int32_t>(threadIdx.x) < k) before[threadIdx.x] = own[threadIdx.x];
  __syncthreads();
  Found last{-1, INFINITY};  // the one found before: all that follow are worse
  const auto follows = [&](const Found& hit) { return last.row < 0 || better(last, hit); };
  for (int32_t n = 0; n < k; ++n) {
    Found best = nothing();
    for (int64_t i = threadIdx.x; i < rows; i += kThreads) {
      const Found hit{static_cast<int32_t>(first_row + i), scores[i]};
      if (hit.score == hit.score && follows(hit) && better(hit, best)) best = hit;
    }
    for (int32_t i = threadIdx.x; i < k; i += kThreads)
      if (before[i].row >= 0 && follows(before[i]) && better(before[i], best)) best = before[i];
    best = best_of_block(best);
    if (threadIdx.x == 0) own[n] = best;
    if (best.row < 0) {
      for (int32_t i = n + 1 + static_cast<int32_t>(threadIdx.x); i < k; i += kThreads) own[i] = nothing();
      return;
    }
    last = best;
  }
}

struct Question {
  AnalogyQuestion rows, places;  // places: among the words of all questions
};
struct Answer {
  Found add, mul;
};

__global__ void analogy_kernel(const float* products, int64_t first_row, int64_t rows, const Question* questions,
                               Answer* answers) {
  const Question question = questions[blockIdx.x];
  const float* a = products + question.places.a * rows;
  const float* b = products + question.places.b * rows;
  const float* c = products + question.places.c * rows;
  Found add = nothing(), mul = nothing();
  for (int64_t i = threadIdx.x; i < rows; i += kThreads) {
    const auto row = static_cast<int32_t>(first_row + i);
    if (row == question.rows.a || row == question.rows.b || row == question.rows.c) continue;
    const Found sum{row, b[i] - a[i] + c[i]};
    const Found ratio{row, (1 + b[i]) / 2 * ((1 + c[i]) / 2) / ((1 + a[i]) / 2 + 1e-3f)};
    if (sum.score == sum.score && better(sum, add)) add = sum;
    if (ratio.score == ratio.score && better(ratio, mul)) mul = ratio;
  }
  add = best_of_block(add);
  mul = best_of_block(mul);
  if (threadIdx.x != 0) return;
  Answer& answer = answers[blockIdx.x];
  if (better(add, answer.add)) answer.add = add;
  if (better(mul, answer.mul)) answer.mul = mul;
}

__global__ void widen_kernel(const float* from, int64_t size, double* to) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < size) to[i] = from[i];
}

uint32_t blocks_for(int64_t items) {
  return static_cast<uint32_t>((items + kThreads - 1) / kThreads);
}

class Products final : public CardProducts {
 public:
  Status begin() {
    STREAMVEC_ASSIGN_OR_RETURN(Blas blas, Blas::make(nullptr, Blas::kFp32));
    blas_.emplace(std::move(blas));
    return {};
  }

  Status top_k(MatrixView<const float> rows, MatrixView<const float> queries,
               std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) override {
    STREAMVEC_CHECK(k > 0 && k <= kNearestMax && hits.size() == static_cast<size_t>(queries.rows * k));
    std::fill(hits.begin(), hits.end(), Hit());
    for (int64_t first = 0; first < queries.rows; first += kPieceQueries) {
      const int64_t count = std::min(kPieceQueries, queries.rows - first);
      const size_t at = static_cast<size_t>(first);
      const auto own = excluded.empty() ? excluded : excluded.subspan(at, static_cast<size_t>(count));
      STREAMVEC_RETURN_IF_ERROR(top_k_piece(rows, {queries.row(first), count, queries.cols, queries.stride}, own, k,
                                            hits.subspan(at * static_cast<size_t>(k), static_cast<size_t>(count * k))));
    }
    return {};
  }

  Status best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                        std::span<AnalogyAnswer> answers) override {
    STREAMVEC_CHECK_EQ(answers.size(), questions.size());
    if (questions.empty()) return {};
    const std::vector<int32_t> words = words_of(questions);
    STREAMVEC_RETURN_IF_ERROR(bring_words(rows, words));
    STREAMVEC_RETURN_IF_ERROR(bring_questions(questions, words));
    const auto count = static_cast<int64_t>(words.size());
    STREAMVEC_RETURN_IF_ERROR(for_pieces(rows, count, [&](int64_t first, int64_t size) {
      analogy_kernel<<<static_cast<uint32_t>(questions.size()), kThreads>>>(products_.data(), first, size,
                                                                            questions_.data(), answers_.data());
      return status_of(cudaGetLastError(), "analogies");
    }));
    std::vector<Answer> found(questions.size());
    STREAMVEC_CUDA_RETURN_IF_ERROR(
        copy_now(Way::kFromCard, found.data(), answers_.data(), found.size() * sizeof(Answer)));
    for (size_t i = 0; i < found.size(); ++i) answers[i] = {found[i].add.row, found[i].mul.row};
    return {};
  }

  Status cross_gram(MatrixView<const float> x, MatrixView<const float> y, std::span<double> out) override {
    STREAMVEC_CHECK(x.rows == y.rows && out.size() == static_cast<size_t>(x.cols * y.cols));
    STREAMVEC_RETURN_IF_ERROR(sums_.allocate(out.size()));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemset(sums_.data(), 0, out.size_bytes()));
    for (int64_t first = 0; first < x.rows; first += kGramRows) {
      const int64_t count = std::min(kGramRows, x.rows - first);
      STREAMVEC_RETURN_IF_ERROR(widen(x, first, count, wide_[0]));
      STREAMVEC_RETURN_IF_ERROR(widen(y, first, count, wide_[1]));
      STREAMVEC_RETURN_IF_ERROR(
          blas_->add_cross_gram(wide_[0].data(), x.cols, wide_[1].data(), y.cols, count, sums_.data()));
    }
    STREAMVEC_CUDA_RETURN_IF_ERROR(copy_now(Way::kFromCard, out.data(), sums_.data(), out.size_bytes()));
    return {};
  }

 private:
  static std::vector<int32_t> words_of(std::span<const AnalogyQuestion> questions) {
    std::vector<int32_t> words;
    for (const AnalogyQuestion& question : questions) words.insert(words.end(), {question.a, question.b, question.c});
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
  }

  // Rows without the room between them.
  Status bring(MatrixView<const float> rows, int64_t first, int64_t count, CardBuffer<float>& to) {
    STREAMVEC_RETURN_IF_ERROR(to.allocate(static_cast<size_t>(count * rows.cols)));
    const size_t width = static_cast<size_t>(rows.cols) * sizeof(float);
    STREAMVEC_CUDA_RETURN_IF_ERROR(copy_rows_now(Way::kToCard, to.data(), width, rows.row(first),
                                                 static_cast<size_t>(rows.stride) * sizeof(float), width,
                                                 static_cast<size_t>(count)));
    return {};
  }

  Status bring_words(MatrixView<const float> rows, const std::vector<int32_t>& words) {
    std::vector<float> values;
    values.reserve(words.size() * static_cast<size_t>(rows.cols));
    for (const int32_t row : words) values.insert(values.end(), rows.row(row), rows.row(row) + rows.cols);
    return bring({values.data(), static_cast<int64_t>(words.size()), rows.cols, rows.cols}, 0,
                 static_cast<int64_t>(words.size()), queries_);
  }

  Status bring_questions(std::span<const AnalogyQuestion> questions, const std::vector<int32_t>& words) {
    const auto place = [&](int32_t row) {
      return static_cast<int32_t>(std::lower_bound(words.begin(), words.end(), row) - words.begin());
    };
    std::vector<Question> placed;
    placed.reserve(questions.size());
    for (const AnalogyQuestion& q : questions) placed.push_back({q, {place(q.a), place(q.b), place(q.c)}});
    STREAMVEC_RETURN_IF_ERROR(upload(std::span<const Question>(placed), questions_, nullptr));
    const std::vector<Answer> none(questions.size(), Answer{{-1, 0}, {-1, 0}});
    return upload(std::span<const Answer>(none), answers_, nullptr);
  }

  // look(first row, rows) for each piece of the rows, when the queries' products with it are in products_.
  template <typename Look>
  Status for_pieces(MatrixView<const float> rows, int64_t queries, const Look& look) {
    STREAMVEC_RETURN_IF_ERROR(
        products_.allocate(static_cast<size_t>(queries * std::min(kPieceRows, std::max<int64_t>(rows.rows, 1)))));
    for (int64_t first = 0; first < rows.rows; first += kPieceRows) {
      const int64_t count = std::min(kPieceRows, rows.rows - first);
      STREAMVEC_RETURN_IF_ERROR(bring(rows, first, count, rows_));
      STREAMVEC_RETURN_IF_ERROR(blas_->multiply({queries_.data(), queries, rows.cols}, false,
                                                {rows_.data(), count, rows.cols}, true, false,
                                                {products_.data(), queries, count}));
      STREAMVEC_RETURN_IF_ERROR(look(first, count));
    }
    return {};
  }

  Status top_k_piece(MatrixView<const float> rows, MatrixView<const float> queries,
                     std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) {
    STREAMVEC_RETURN_IF_ERROR(bring(queries, 0, queries.rows, queries_));
    std::vector<int2> left_out;
    for (size_t q = 0; q < excluded.size(); ++q)
      for (const int32_t row : excluded[q]) left_out.push_back({static_cast<int32_t>(q), row});
    STREAMVEC_RETURN_IF_ERROR(upload(std::span<const int2>(left_out), excluded_, nullptr));
    std::vector<Found> found(hits.size(), Found{-1, 0});
    STREAMVEC_RETURN_IF_ERROR(upload(std::span<const Found>(found), hits_, nullptr));
    STREAMVEC_RETURN_IF_ERROR(for_pieces(rows, queries.rows, [&](int64_t first, int64_t count) {
      const auto out = static_cast<int32_t>(left_out.size());
      if (out > 0) exclude_kernel<<<blocks_for(out), kThreads>>>(excluded_.data(), out, first, count, products_.data());
      nearest_kernel<<<static_cast<uint32_t>(queries.rows), kThreads>>>(products_.data(), first, count, k,
                                                                        hits_.data());
      return status_of(cudaGetLastError(), "nearest rows");
    }));
    STREAMVEC_CUDA_RETURN_IF_ERROR(copy_now(Way::kFromCard, found.data(), hits_.data(), found.size() * sizeof(Found)));
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].row >= 0) hits[i] = {found[i].row, found[i].score};
    return {};
  }

  Status widen(MatrixView<const float> rows, int64_t first, int64_t count, CardBuffer<double>& to) {
    STREAMVEC_RETURN_IF_ERROR(bring(rows, first, count, rows_));
    const int64_t size = count * rows.cols;
    STREAMVEC_RETURN_IF_ERROR(to.allocate(static_cast<size_t>(size)));
    widen_kernel<<<blocks_for(size), kThreads>>>(rows_.data(), size, to.data());
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
    return {};
  }

  std::optional<Blas> blas_;
  CardBuffer<float> rows_, queries_, products_;
  CardBuffer<double> wide_[2], sums_;
  CardBuffer<Question> questions_;
  CardBuffer<Answer> answers_;
  CardBuffer<int2> excluded_;
  CardBuffer<Found> hits_;
};

}  // namespace

Result<std::unique_ptr<CardProducts>> make_card_products() {
  STREAMVEC_RETURN_IF_ERROR(find_device().status());
  auto products = std::make_unique<Products>();
  STREAMVEC_RETURN_IF_ERROR(products->begin());
  return std::unique_ptr<CardProducts>(std::move(products));
}

}  // namespace streamvec::cuda
