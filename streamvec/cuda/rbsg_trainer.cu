#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "streamvec/cuda/blas.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/rbsg_kernels.h"
#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {
namespace {

constexpr int kGates = 4;
constexpr size_t kSlots = 2;  // batches on the card: one in work, one laid out
enum Part { kCharacters, kInput, kRecurrent, kBias, kOutput, kOutputBias };

struct BatchResult {
  double loss, square;
  int32_t refused;
};

// Grows with room to spare, so that memory is seldom asked for.
template <typename T, bool kOnCard>
Status reserve(Buffer<T, kOnCard>& buffer, size_t size) {
  return size <= buffer.size() ? Status() : buffer.allocate(size + size / 2);
}

// What one encoder computes for a batch.
struct Encoding {
  CardBuffer<float> letters, table, h, c, gates, product, words, out;
  CardBuffer<float> dout, dwords, dh, dc, dz, dz_sum, dtable, dletters;
};

// One side of a batch on the card.
struct SidePlan {
  const int32_t *parents, *characters, *alphabet, *word_nodes, *order, *begins;
  int32_t nodes, inner, alphabet_size, words;
  std::vector<RbsgSide::Level> levels;
};

struct BatchSlot {
  PinnedBuffer<int32_t> staged;
  CardBuffer<int32_t> numbers;
  PinnedBuffer<BatchResult> result;
  CardBuffer<BatchResult> card_result;
  SidePlan sides[2];
  const RowPair* pairs;
  const int32_t *pool, *places;
  const float* pool_weights;
  int32_t pairs_count = 0, pool_size = 0;
  size_t staged_count = 0;
  float lr = 0;
  cudaEvent_t done = nullptr;
  bool in_work = false;
};

// Arrays one after the other, to be copied in one go.
class Stage {
 public:
  explicit Stage(BatchSlot& slot) : slot_(slot) {}
  template <typename T>
  const T* add(std::span<const T> values) {
    static_assert(sizeof(T) % sizeof(int32_t) == 0);
    const size_t at = used_;
    std::memcpy(&slot_.staged[at], values.data(), values.size_bytes());
    used_ += (values.size_bytes() / sizeof(int32_t) + 3) / 4 * 4;
    return reinterpret_cast<const T*>(slot_.numbers.data() + at);
  }
  size_t used() const { return used_; }

 private:
  BatchSlot& slot_;
  size_t used_ = 0;
};

class CardRbsg final : public RbsgTrainer {
 public:
  explicit CardRbsg(const RbsgShape& shape) : shape_(shape) {
    const int64_t gates = kGates * shape.hidden;
    const int64_t rows[] = {shape.characters, shape.character_dim, shape.hidden, 1, shape.hidden, 1};
    const int64_t cols[] = {shape.character_dim, gates, gates, gates, shape.dim, shape.dim};
    for (int side = 0; side < 2; ++side)
      for (int part = 0; part < kEncoderParts; ++part) {
        places_[side][part] = {size_, rows[part], cols[part]};
        size_ += (rows[part] * cols[part] + 3) / 4 * 4;
      }
  }

  ~CardRbsg() override {
    if (launcher_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        closed_ = true;
      }
      changed_.notify_all();
      launcher_.join();
    }
    for (cudaStream_t stream : streams_)
      if (stream != nullptr) cudaStreamSynchronize(stream);
    blas_[0].reset();
    blas_[1].reset();
    for (BatchSlot& slot : slots_)
      if (slot.done != nullptr) cudaEventDestroy(slot.done);
    if (reached_ != nullptr) cudaEventDestroy(reached_);
    for (cudaStream_t stream : streams_)
      if (stream != nullptr) cudaStreamDestroy(stream);
  }

  Status begin() {
    STREAMVEC_RETURN_IF_ERROR(check_device_memory("both encoders and Adam's moments", 16.0 * static_cast<double>(size_),
                                                  "a smaller --hidden, or --device cpu"));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming));
    for (int side = 0; side < 2; ++side) {
      STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&streams_[side], cudaStreamNonBlocking));
      STREAMVEC_ASSIGN_OR_RETURN(Blas blas, Blas::make(streams_[side]));
      blas_[side].emplace(std::move(blas));
    }
    for (CardBuffer<float>* buffer : {&values_, &means_, &variances_, &slopes_}) {
      STREAMVEC_RETURN_IF_ERROR(buffer->allocate(static_cast<size_t>(size_)));
      STREAMVEC_CUDA_RETURN_IF_ERROR(
          cudaMemsetAsync(buffer->data(), 0, sizeof(float) * static_cast<size_t>(size_), streams_[0]));
    }
    for (BatchSlot& slot : slots_) {
      STREAMVEC_RETURN_IF_ERROR(slot.result.allocate(1));
      STREAMVEC_RETURN_IF_ERROR(slot.card_result.allocate(1));
      STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming));
    }
    launcher_ = std::thread([this] { launch_batches(); });
    return {};
  }

  Status put(const EncoderViews (&values)[2], const EncoderViews (&means)[2], const EncoderViews (&variances)[2],
             int64_t steps) override {
    STREAMVEC_RETURN_IF_ERROR(finish());
    steps_ = steps;
    STREAMVEC_RETURN_IF_ERROR(copy(values, values_, true));
    STREAMVEC_RETURN_IF_ERROR(copy(means, means_, true));
    return copy(variances, variances_, true);
  }

  Status get(const EncoderViews (&values)[2], const EncoderViews (&means)[2],
             const EncoderViews (&variances)[2]) override {
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(copy(values, values_, false));
    STREAMVEC_RETURN_IF_ERROR(copy(means, means_, false));
    return copy(variances, variances_, false);
  }

  Status train(const RbsgWork& work) override {
    BatchSlot& slot = slots_[turn_];
    turn_ = (turn_ + 1) % kSlots;
    STREAMVEC_RETURN_IF_ERROR(empty_out(slot));
    STREAMVEC_RETURN_IF_ERROR(stage(work, slot));
    {
      const std::lock_guard lock(mutex_);
      slot.lr = work.lr;
      slot.in_work = true;
      waiting_.push_back(&slot);
    }
    changed_.notify_all();
    return {};
  }

  Result<RbsgTotals> totals(bool all) override {
    if (all) STREAMVEC_RETURN_IF_ERROR(finish());
    return std::exchange(totals_, RbsgTotals());
  }

 private:
  struct Place {
    int64_t begin, rows, cols;
  };

  CardMatrix matrix(const CardBuffer<float>& buffer, int side, int part) const {
    const Place& place = places_[side][part];
    return {buffer.data() + place.begin, place.rows, place.cols};
  }
  CardMatrix value(int side, int part) const { return matrix(values_, side, part); }
  CardMatrix slope(int side, int part) const { return matrix(slopes_, side, part); }

  Status copy(const EncoderViews (&views)[2], const CardBuffer<float>& buffer, bool to_card) {
    for (int side = 0; side < 2; ++side)
      for (int part = 0; part < kEncoderParts; ++part) {
        const MatrixView<float>& view = views[side][static_cast<size_t>(part)];
        const CardMatrix card = matrix(buffer, side, part);
        STREAMVEC_CHECK_EQ(view.rows, card.rows);
        STREAMVEC_CHECK_EQ(view.cols, card.cols);
        const size_t host_pitch = static_cast<size_t>(view.stride) * sizeof(float);
        const size_t width = static_cast<size_t>(card.cols) * sizeof(float);
        STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemcpy2D(to_card ? card.data : view.data, to_card ? width : host_pitch,
                                                    to_card ? view.data : card.data, to_card ? host_pitch : width,
                                                    width, static_cast<size_t>(card.rows), cudaMemcpyDefault));
      }
    return {};
  }

  // Some 200 calls a batch: a thread of its own makes them, so that the next batch is planned meanwhile.
  void launch_batches() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      BatchSlot& slot = *waiting_.front();
      lock.unlock();
      const Status launched = launch(slot);
      lock.lock();
      if (status_.ok()) status_ = launched;
      waiting_.erase(waiting_.begin());
      changed_.notify_all();
    }
  }

  // The two sides have streams and handles of their own; a thread each calls for them.
  template <typename OnSide>
  static Status on_both_sides(const OnSide& on_side) {
    Status second;
    std::thread other([&] { (void)(second = on_side(1)); });
    const Status first = on_side(0);
    other.join();
    return first.ok() ? second : first;
  }

  Status launch(BatchSlot& slot) {
    STREAMVEC_RETURN_IF_ERROR(bring(slot));
    STREAMVEC_RETURN_IF_ERROR(follow(1, 0));
    STREAMVEC_RETURN_IF_ERROR(on_both_sides([&](int side) { return forward(side, slot.sides[side]); }));
    STREAMVEC_RETURN_IF_ERROR(follow(0, 1));
    STREAMVEC_RETURN_IF_ERROR(climb_loss(slot));
    STREAMVEC_RETURN_IF_ERROR(follow(1, 0));
    STREAMVEC_RETURN_IF_ERROR(on_both_sides([&](int side) { return backward(side, slot.sides[side]); }));
    STREAMVEC_RETURN_IF_ERROR(follow(0, 1));
    return step(slot.lr, slot);
  }

  // What comes on the stream of `side` waits for all that is on the other's.
  Status follow(int side, int other) {
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(reached_, streams_[other]));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(streams_[side], reached_));
    return {};
  }

  // Puts the batch's numbers where the card can copy them from.
  Status stage(const RbsgWork& work, BatchSlot& slot) {
    size_t size = 3 * work.pairs.size() + 4 * work.pool.size() + work.sides[1].word_nodes.size() + 64;
    for (const RbsgSide& side : work.sides)
      size += 4 * side.parents.size() + 3 * side.alphabet.size() + side.word_nodes.size() + 64;
    STREAMVEC_RETURN_IF_ERROR(reserve(slot.staged, size));
    STREAMVEC_RETURN_IF_ERROR(reserve(slot.numbers, size));
    Stage stage(slot);
    for (int side = 0; side < 2; ++side) stage_side(work.sides[side], stage, slot.sides[side]);
    slot.pairs = stage.add(std::span<const RowPair>(work.pairs));
    slot.pairs_count = static_cast<int32_t>(work.pairs.size());
    slot.pool = stage.add(work.pool);
    slot.pool_weights = stage.add(work.pool_weights);
    slot.pool_size = static_cast<int32_t>(work.pool.size());
    scratch_.assign(work.sides[1].word_nodes.size(), -1);
    for (size_t i = 0; i < work.pool.size(); ++i) scratch_[static_cast<size_t>(work.pool[i])] = static_cast<int32_t>(i);
    slot.places = stage.add(std::span<const int32_t>(scratch_));
    slot.staged_count = stage.used();
    return {};
  }

  Status bring(BatchSlot& slot) {
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(slot.numbers.data(), slot.staged.data(),
                                                   slot.staged_count * sizeof(int32_t), cudaMemcpyHostToDevice,
                                                   streams_[0]));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(slot.card_result.data(), 0, sizeof(BatchResult), streams_[0]));
    return {};
  }

  void stage_side(const RbsgSide& side, Stage& stage, SidePlan& plan) {
    plan.parents = stage.add(side.parents);
    plan.characters = stage.add(side.characters);
    plan.alphabet = stage.add(std::span<const int32_t>(side.alphabet));
    plan.word_nodes = stage.add(side.word_nodes);
    plan.nodes = static_cast<int32_t>(side.parents.size());
    plan.inner = side.inner;
    plan.alphabet_size = static_cast<int32_t>(side.alphabet.size());
    plan.words = static_cast<int32_t>(side.word_nodes.size());
    plan.levels = side.levels;
    // Nodes by character; the empty beginning has none.
    begins_.assign(side.alphabet.size() + 1, 0);
    for (size_t node = 1; node < side.parents.size(); ++node) ++begins_[static_cast<size_t>(side.characters[node]) + 1];
    for (size_t a = 1; a < begins_.size(); ++a) begins_[a] += begins_[a - 1];
    scratch_.resize(side.parents.size() - 1);
    places_by_character_.assign(begins_.begin(), begins_.end());
    for (size_t node = 1; node < side.parents.size(); ++node)
      scratch_[static_cast<size_t>(places_by_character_[static_cast<size_t>(side.characters[node])]++)] =
          static_cast<int32_t>(node);
    plan.order = stage.add(std::span<const int32_t>(scratch_));
    plan.begins = stage.add(std::span<const int32_t>(begins_));
  }

  Status reserve_for(const SidePlan& plan, Encoding& e) {
    const auto nodes = static_cast<size_t>(plan.nodes), inner = static_cast<size_t>(plan.inner);
    const auto words = static_cast<size_t>(plan.words), letters = static_cast<size_t>(plan.alphabet_size);
    const auto H = static_cast<size_t>(shape_.hidden), D = static_cast<size_t>(shape_.dim);
    const auto C = static_cast<size_t>(shape_.character_dim), G = kGates * H;
    const std::pair<CardBuffer<float>*, size_t> wanted[] = {
        {&e.letters, letters * C}, {&e.table, letters * G}, {&e.h, nodes * H},        {&e.c, nodes * H},
        {&e.gates, nodes * G},     {&e.product, inner * G}, {&e.words, words * H},    {&e.out, words * D},
        {&e.dout, words * D},      {&e.dwords, words * H},  {&e.dh, nodes * H},       {&e.dc, inner * H},
        {&e.dz, nodes * G},        {&e.dz_sum, inner * G},  {&e.dtable, letters * G}, {&e.dletters, letters * C}};
    for (const auto& [buffer, size] : wanted) STREAMVEC_RETURN_IF_ERROR(reserve(*buffer, size));
    return {};
  }

  LstmNodes nodes_of(const SidePlan& plan, const Encoding& e) const {
    return {plan.parents, plan.characters, e.table.data(), e.h.data(), e.c.data(), e.gates.data(), shape_.hidden};
  }
  CardMatrix rows_of(const CardBuffer<float>& buffer, int64_t first, int64_t rows, int64_t cols) const {
    return {buffer.data() + first * cols, rows, cols};
  }

  Status forward(int side, const SidePlan& plan) {
    Encoding& e = encodings_[side];
    const Blas& blas = *blas_[side];
    cudaStream_t stream = streams_[side];
    const int64_t H = shape_.hidden, G = kGates * H;
    STREAMVEC_RETURN_IF_ERROR(reserve_for(plan, e));
    gather_rows(value(side, kCharacters).data, plan.alphabet, plan.alphabet_size, shape_.character_dim,
                e.letters.data(), stream);
    fill_rows(value(side, kBias).data, plan.alphabet_size, G, e.table.data(), stream);
    const CardMatrix letters = rows_of(e.letters, 0, plan.alphabet_size, shape_.character_dim);
    STREAMVEC_RETURN_IF_ERROR(
        blas.multiply(letters, false, value(side, kInput), false, true, rows_of(e.table, 0, plan.alphabet_size, G)));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(e.h.data(), 0, static_cast<size_t>(H) * sizeof(float), stream));
    for (size_t length = 1; length < plan.levels.size(); ++length) {
      const RbsgSide::Level& before = plan.levels[length - 1];
      const int64_t inner = before.inner_end - before.inner_begin;
      if (length > 1)
        STREAMVEC_RETURN_IF_ERROR(blas.multiply(rows_of(e.h, before.inner_begin, inner, H), false,
                                                value(side, kRecurrent), false, false,
                                                rows_of(e.product, 0, inner, G)));
      lstm_level(nodes_of(plan, e), plan.levels[length], length > 1 ? e.product.data() : nullptr, before.inner_begin,
                 stream);
    }
    gather_rows(e.h.data(), plan.word_nodes, plan.words, H, e.words.data(), stream);
    fill_rows(value(side, kOutputBias).data, plan.words, shape_.dim, e.out.data(), stream);
    return blas.multiply(rows_of(e.words, 0, plan.words, H), false, value(side, kOutput), false, true,
                         rows_of(e.out, 0, plan.words, shape_.dim));
  }

  Status climb_loss(BatchSlot& slot) {
    cudaStream_t stream = streams_[0];
    const Blas& blas = *blas_[0];
    const int64_t D = shape_.dim, centres = slot.sides[0].words, outputs = slot.sides[1].words, pool = slot.pool_size;
    for (int side = 0; side < 2; ++side)
      STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
          encodings_[side].dout.data(), 0, static_cast<size_t>(slot.sides[side].words * D) * sizeof(float), stream));
    const float scale = 1 / static_cast<float>(std::max(slot.pairs_count, 1));
    double* loss = &slot.card_result.data()->loss;
    const CardMatrix u = rows_of(encodings_[0].out, 0, centres, D), du = rows_of(encodings_[0].dout, 0, centres, D);
    const CardMatrix v = rows_of(encodings_[1].out, 0, outputs, D), dv = rows_of(encodings_[1].dout, 0, outputs, D);
    climb_pairs({u.data, v.data, du.data, dv.data, shape_.dim, scale, loss}, slot.pairs, slot.pairs_count, stream);
    if (pool == 0) return {};
    STREAMVEC_RETURN_IF_ERROR(reserve(pooled_, static_cast<size_t>(pool * D)));
    STREAMVEC_RETURN_IF_ERROR(reserve(pooled_slopes_, static_cast<size_t>(pool * D)));
    STREAMVEC_RETURN_IF_ERROR(reserve(weights_, static_cast<size_t>(centres * pool)));
    STREAMVEC_RETURN_IF_ERROR(reserve(products_, static_cast<size_t>(centres * pool)));
    STREAMVEC_RETURN_IF_ERROR(reserve(counts_, static_cast<size_t>(centres)));
    const CardMatrix pooled = rows_of(pooled_, 0, pool, D), products = rows_of(products_, 0, centres, pool);
    gather_rows(v.data, slot.pool, pool, D, pooled.data, stream);
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(u, false, pooled, true, false, products));
    weigh_pool(slot.pairs, slot.pairs_count, slot.places, slot.pool_weights, slot.pool_size,
               static_cast<int32_t>(centres), counts_.data(), weights_.data(), stream);
    climb_pool(weights_.data(), centres * pool, scale, products.data, loss, stream);
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(products, false, pooled, false, true, du));
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(products, true, u, false, false, rows_of(pooled_slopes_, 0, pool, D)));
    add_to_rows(pooled_slopes_.data(), slot.pool, pool, D, dv.data, stream);
    return {};
  }

  Status backward(int side, const SidePlan& plan) {
    Encoding& e = encodings_[side];
    const Blas& blas = *blas_[side];
    cudaStream_t stream = streams_[side];
    const int64_t H = shape_.hidden, G = kGates * H, D = shape_.dim;
    const CardMatrix dout = rows_of(e.dout, 0, plan.words, D), words = rows_of(e.words, 0, plan.words, H);
    const CardMatrix dwords = rows_of(e.dwords, 0, plan.words, H);
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(dout, false, value(side, kOutput), true, false, dwords));
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(words, true, dout, false, true, slope(side, kOutput)));
    add_column_sums(dout.data, plan.words, D, slope(side, kOutputBias).data, stream);
    const auto zero = [&](const CardBuffer<float>& buffer, int64_t size) {
      return status_of(cudaMemsetAsync(buffer.data(), 0, static_cast<size_t>(size) * sizeof(float), stream),
                       "clearing");
    };
    STREAMVEC_RETURN_IF_ERROR(zero(e.dh, plan.nodes * H));
    STREAMVEC_RETURN_IF_ERROR(zero(e.dc, plan.inner * H));
    STREAMVEC_RETURN_IF_ERROR(zero(e.dz_sum, plan.inner * G));
    STREAMVEC_RETURN_IF_ERROR(zero(e.dtable, plan.alphabet_size * G));
    add_to_rows(dwords.data, plan.word_nodes, plan.words, H, e.dh.data(), stream);
    const LstmSlopes slopes{e.dh.data(), e.dc.data(), e.dz.data(), e.dz_sum.data()};
    for (size_t length = plan.levels.size() - 1; length >= 1; --length) {
      climb_lstm_level(nodes_of(plan, e), slopes, plan.levels[length], length == 1, stream);
      const RbsgSide::Level& before = plan.levels[length - 1];
      const int64_t inner = before.inner_end - before.inner_begin;
      if (length > 1)
        STREAMVEC_RETURN_IF_ERROR(blas.multiply(rows_of(e.dz_sum, before.inner_begin, inner, G), false,
                                                value(side, kRecurrent), true, true,
                                                rows_of(e.dh, before.inner_begin, inner, H)));
    }
    // Not node 0, whose h is nothing.
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(rows_of(e.h, 1, plan.inner - 1, H), true,
                                            rows_of(e.dz_sum, 1, plan.inner - 1, G), false, true,
                                            slope(side, kRecurrent)));
    return climb_table(side, plan);
  }

  Status climb_table(int side, const SidePlan& plan) {
    Encoding& e = encodings_[side];
    const Blas& blas = *blas_[side];
    const int64_t G = kGates * shape_.hidden, C = shape_.character_dim, letters_count = plan.alphabet_size;
    sum_by_character(e.dz.data(), plan.order, plan.begins, plan.alphabet_size, static_cast<int32_t>(G), e.dtable.data(),
                     streams_[side]);
    const CardMatrix letters = rows_of(e.letters, 0, letters_count, C), dtable = rows_of(e.dtable, 0, letters_count, G);
    const CardMatrix dletters = rows_of(e.dletters, 0, letters_count, C);
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(letters, true, dtable, false, true, slope(side, kInput)));
    add_column_sums(dtable.data, letters_count, G, slope(side, kBias).data, streams_[side]);
    STREAMVEC_RETURN_IF_ERROR(blas.multiply(dtable, false, value(side, kInput), true, false, dletters));
    add_to_rows(dletters.data, plan.alphabet, letters_count, C, slope(side, kCharacters).data, streams_[side]);
    return {};
  }

  Status step(float lr, BatchSlot& slot) {
    constexpr double kBeta1 = 0.9f, kBeta2 = 0.999f;
    ++steps_;
    const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
    const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(steps_));
    const double most = 1.1 * lr * (1 - kBeta1) / std::sqrt((1 - kBeta2) * (1 - kBeta1 * kBeta1 / kBeta2));
    const AdamNumbers numbers{static_cast<float>(lr / correction1), static_cast<float>(1 / std::sqrt(correction2)),
                              static_cast<float>(most)};
    BatchResult* result = slot.card_result.data();
    add_squares(slopes_.data(), size_, &result->square, streams_[0]);
    adam(numbers, size_, &result->square, &result->loss, slopes_.data(), means_.data(), variances_.data(),
         values_.data(), &result->refused, streams_[0]);
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
    STREAMVEC_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(slot.result.data(), result, sizeof(BatchResult), cudaMemcpyDeviceToHost, streams_[0]));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(slot.done, streams_[0]));
    return {};
  }

  Status empty_out(BatchSlot& slot) {
    if (!slot.in_work) return {};
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return std::find(waiting_.begin(), waiting_.end(), &slot) == waiting_.end(); });
      STREAMVEC_RETURN_IF_ERROR(status_);
    }
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(slot.done));
    slot.in_work = false;
    const BatchResult& result = slot.result[0];
    totals_.batches_refused += result.refused;
    if (result.refused > 0) return {};
    totals_.pairs += slot.pairs_count;
    totals_.loss += result.loss;
    return {};
  }

  Status finish() {
    for (size_t i = 0; i < kSlots; ++i) STREAMVEC_RETURN_IF_ERROR(empty_out(slots_[(turn_ + i) % kSlots]));
    return status_of(cudaStreamSynchronize(streams_[0]), "training");
  }

  const RbsgShape shape_;
  Place places_[2][kEncoderParts];
  int64_t size_ = 0, steps_ = 0;
  cudaStream_t streams_[2] = {nullptr, nullptr};
  cudaEvent_t reached_ = nullptr;
  std::optional<Blas> blas_[2];
  CardBuffer<float> values_, means_, variances_, slopes_;
  Encoding encodings_[2];
  CardBuffer<float> pooled_, pooled_slopes_, weights_, products_;
  CardBuffer<int32_t> counts_;
  BatchSlot slots_[kSlots];
  size_t turn_ = 0;
  std::vector<int32_t> scratch_, begins_, places_by_character_;
  RbsgTotals totals_;

  std::thread launcher_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<BatchSlot*> waiting_;  // to be launched; the first is being
  Status status_;
  bool closed_ = false;
};

}  // namespace

Result<std::unique_ptr<RbsgTrainer>> make_rbsg_trainer(const RbsgShape& shape) {
  STREAMVEC_RETURN_IF_ERROR(find_device().status());
  auto trainer = std::make_unique<CardRbsg>(shape);
  STREAMVEC_RETURN_IF_ERROR(trainer->begin());
  return std::unique_ptr<RbsgTrainer>(std::move(trainer));
}

}  // namespace streamvec::cuda
