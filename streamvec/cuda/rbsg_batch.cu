#include <algorithm>
#include <cmath>
#include <utility>

#include "streamvec/cuda/rbsg_batch.h"
#include "streamvec/cuda/rbsg_kernels.h"

namespace streamvec::cuda {
namespace {

constexpr int kMatrixParts[] = {kInput, kRecurrent, kOutput};

int64_t fours_of(int64_t size) {
  return (size + 3) / 4 * 4;
}

struct SideRows {
  const float* from;
  const int32_t* index;
  int64_t rows;
  float* to;
};

// `of(side)`: its rows.
template <typename Of>
BothRows both_sides(int64_t cols, const Of& of) {
  const SideRows one = of(0), two = of(1);
  return {{one.from, two.from}, {one.to, two.to}, {one.index, two.index}, {one.rows, two.rows}, cols};
}

CardMatrix rows_of(float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols};
}

// Both sides of the level of this length; nothing of a side whose words are shorter.
LstmLevel level_of(const RbsgPlanned& batch, size_t length, LstmLevel sides) {
  for (int side = 0; side < 2; ++side) {
    const std::vector<RbsgSide::Level>& levels = batch.sides[side].levels;
    const bool there = length < levels.size();
    sides.sides[side].level = there ? levels[length] : RbsgSide::Level{};
  }
  return sides;
}

size_t levels_of(const RbsgPlanned& batch) {
  return std::max(batch.sides[0].levels.size(), batch.sides[1].levels.size());
}

Status begin_stream(cudaStream_t& stream, cudaEvent_t& event, std::optional<Blas>& blas) {
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  STREAMVEC_ASSIGN_OR_RETURN(Blas made, Blas::make(stream));
  blas.emplace(std::move(made));
  return {};
}

// What comes on `to` from here on comes after what is on `from`.
Status put_after(cudaStream_t from, cudaEvent_t event, cudaStream_t to) {
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(event, from));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(to, event));
  return {};
}

}  // namespace

RbsgSteps::RbsgSteps(const RbsgShape& shape) : shape_(shape) {
  const int64_t gates = int64_t{shape.gates()} * shape.hidden;
  const int64_t rows[] = {shape.characters, shape.character_dim, shape.hidden, 1, shape.hidden, 1};
  const int64_t cols[] = {shape.character_dim, gates, gates, gates, shape.dim, shape.dim};
  for (int side = 0; side < 2; ++side)
    for (int part = 0; part < kEncoderParts; ++part) {
      places_[side][part] = {size_, rows[part], cols[part]};
      size_ += fours_of(rows[part] * cols[part]);
    }
}

RbsgSteps::~RbsgSteps() {
  for (cudaStream_t stream : {stream_, beside_})
    if (stream != nullptr) cudaStreamSynchronize(stream);
  blas_.reset();
  blas_beside_.reset();
  for (cudaEvent_t event : {forked_, joined_})
    if (event != nullptr) cudaEventDestroy(event);
  for (cudaStream_t stream : {stream_, beside_})
    if (stream != nullptr) cudaStreamDestroy(stream);
}

Status RbsgSteps::begin() {
  STREAMVEC_RETURN_IF_ERROR(check_device_memory("both encoders and their moments", 16.0 * static_cast<double>(size_),
                                                "a smaller --hidden, or --device cpu"));
  STREAMVEC_RETURN_IF_ERROR(begin_stream(stream_, forked_, blas_));
  STREAMVEC_RETURN_IF_ERROR(begin_stream(beside_, joined_, blas_beside_));
  for (CardBuffer<float>& buffer : buffers_) {
    STREAMVEC_RETURN_IF_ERROR(buffer.allocate(static_cast<size_t>(size_)));
    STREAMVEC_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(buffer.data(), 0, sizeof(float) * static_cast<size_t>(size_), stream_));
  }
  if (shape_.muon)
    for (int side = 0; side < 2; ++side)
      for (const int part : kMatrixParts) STREAMVEC_RETURN_IF_ERROR(muon_[side].reserve_for(value(side, part)));
  if (shape_.bf16)
    for (int side = 0; side < 2; ++side)
      STREAMVEC_RETURN_IF_ERROR(recurrent_[side].allocate(static_cast<size_t>(value(side, kRecurrent).size())));
  return wait();
}

CardMatrix RbsgSteps::matrix(int buffer, int side, int part) const {
  const Place& place = places_[side][part];
  return {buffers_[buffer].data() + place.begin, place.rows, place.cols};
}

Status RbsgSteps::copy(const EncoderViews (&views)[2], Kind kind, bool to_card) {
  for (int side = 0; side < 2; ++side)
    for (int part = 0; part < kEncoderParts; ++part) {
      const MatrixView<float>& view = views[side][static_cast<size_t>(part)];
      const CardMatrix card = matrix(kind, side, part);
      STREAMVEC_CHECK_EQ(view.rows, card.rows);
      STREAMVEC_CHECK_EQ(view.cols, card.cols);
      const size_t host_pitch = static_cast<size_t>(view.stride) * sizeof(float);
      const size_t width = static_cast<size_t>(card.cols) * sizeof(float);
      const auto rows = static_cast<size_t>(card.rows);
      STREAMVEC_CUDA_RETURN_IF_ERROR(
          to_card ? copy_rows_now(Way::kToCard, card.data, width, view.data, host_pitch, width, rows)
                  : copy_rows_now(Way::kFromCard, view.data, host_pitch, card.data, width, width, rows));
    }
  return {};
}

Status RbsgSteps::queue(RbsgPlanned& batch) {
  STREAMVEC_RETURN_IF_ERROR(reserve_for(batch));
  STREAMVEC_RETURN_IF_ERROR(batch.bring(stream_));
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(zeroed_.data(), 0, zeroed_size_ * sizeof(float), stream_));
  if (shape_.bf16) STREAMVEC_RETURN_IF_ERROR(round_weights());
  STREAMVEC_RETURN_IF_ERROR(forward(batch));
  STREAMVEC_RETURN_IF_ERROR(climb_loss(batch));
  STREAMVEC_RETURN_IF_ERROR(backward(batch));
  STREAMVEC_RETURN_IF_ERROR(step(batch));
  return batch.send_result(stream_);
}

Status RbsgSteps::go_beside() {
  return put_after(stream_, forked_, beside_);
}

Status RbsgSteps::join() {
  return put_after(beside_, joined_, stream_);
}

Status RbsgSteps::round_weights() {
  RoundedBoth both{};
  for (int side = 0; side < 2; ++side) {
    both.from[side] = value(side, kRecurrent).data;
    both.to[side] = recurrent_[side].data();
  }
  both.size = value(0, kRecurrent).size();
  round_to_bf16(both, stream_);
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return {};
}

// Memory that is given back is first waited for, by CUDA: what is in work may use it.
Status RbsgSteps::reserve_for(const RbsgPlanned& batch) {
  const auto H = static_cast<size_t>(shape_.hidden), D = static_cast<size_t>(shape_.dim);
  const auto C = static_cast<size_t>(shape_.character_dim), G = static_cast<size_t>(shape_.gates()) * H;
  zeroed_size_ = 0;
  std::pair<float**, size_t> places[11];
  size_t count = 0;
  const auto place = [&](float*& to, size_t size) {
    places[count++] = {&to, zeroed_size_};
    zeroed_size_ += (size + 3) / 4 * 4;
  };
  for (int side = 0; side < 2; ++side) {
    const SidePlan& plan = batch.sides[side];
    Encoding& e = encodings_[side];
    const auto nodes = static_cast<size_t>(plan.nodes), inner = static_cast<size_t>(plan.inner);
    const auto words = static_cast<size_t>(plan.words), letters = static_cast<size_t>(plan.alphabet_size);
    const std::pair<CardBuffer<float>*, size_t> wanted[] = {
        {&e.letters, letters * C}, {&e.table, letters * G},       {&e.h, nodes * H},
        {&e.c, nodes * H},         {&e.gates, nodes * kKept * H}, {&e.words, words * H},
        {&e.out, words * D},       {&e.dwords, words * H},        {&e.dz, nodes * G},
        {&e.dletters, letters * C}};
    for (const auto& [buffer, size] : wanted) STREAMVEC_RETURN_IF_ERROR(reserve(*buffer, size));
    place(e.dout, words * D);
    place(e.dh, nodes * H);
    place(e.dc, inner * H);
    place(e.dz_sum, inner * G);
    place(e.dtable, letters * G);
  }
  float* counts = nullptr;
  place(counts, static_cast<size_t>(batch.sides[0].words));
  STREAMVEC_RETURN_IF_ERROR(reserve(zeroed_, zeroed_size_));
  for (size_t i = 0; i < count; ++i) *places[i].first = zeroed_.data() + places[i].second;
  counts_ = reinterpret_cast<int32_t*>(counts);
  return {};
}

Status RbsgSteps::forward(const RbsgPlanned& batch) {
  const int64_t H = shape_.hidden, G = shape_.gates() * H, C = shape_.character_dim, D = shape_.dim;
  const auto alphabet = [&](int side) -> int64_t { return batch.sides[side].alphabet_size; };
  const auto words = [&](int side) -> int64_t { return batch.sides[side].words; };
  gather_rows(both_sides(C,
                         [&](int side) {
                           return SideRows{value(side, kCharacters).data, batch.sides[side].alphabet, alphabet(side),
                                           encodings_[side].letters.data()};
                         }),
              stream_);
  fill_rows(
      both_sides(G,
                 [&](int side) {
                   return SideRows{value(side, kBias).data, nullptr, alphabet(side), encodings_[side].table.data()};
                 }),
      stream_);
  for (int side = 0; side < 2; ++side)
    STREAMVEC_RETURN_IF_ERROR(blas_->multiply(rows_of(encodings_[side].letters.data(), alphabet(side), C), false,
                                              value(side, kInput), false, true,
                                              rows_of(encodings_[side].table.data(), alphabet(side), G)));
  const LstmLevel sides = lstm_sides(batch);
  first_lstm_level(level_of(batch, 1, sides), stream_);
  for (size_t length = 2; length < levels_of(batch); ++length)
    STREAMVEC_CUDA_RETURN_IF_ERROR(next_lstm_level(level_of(batch, length, sides), stream_));
  gather_rows(both_sides(H,
                         [&](int side) {
                           return SideRows{encodings_[side].h.data(), batch.sides[side].word_nodes, words(side),
                                           encodings_[side].words.data()};
                         }),
              stream_);
  fill_rows(
      both_sides(D,
                 [&](int side) {
                   return SideRows{value(side, kOutputBias).data, nullptr, words(side), encodings_[side].out.data()};
                 }),
      stream_);
  for (int side = 0; side < 2; ++side)
    STREAMVEC_RETURN_IF_ERROR(blas_->multiply(rows_of(encodings_[side].words.data(), words(side), H), false,
                                              value(side, kOutput), false, true,
                                              rows_of(encodings_[side].out.data(), words(side), D)));
  return {};
}

LstmLevel RbsgSteps::lstm_sides(const RbsgPlanned& batch) const {
  LstmLevel made{};
  made.hidden = shape_.hidden;
  made.gru = shape_.gru;
  made.bf16 = shape_.bf16;
  for (int side = 0; side < 2; ++side) {
    const Encoding& e = encodings_[side];
    const SidePlan& plan = batch.sides[side];
    made.sides[side] = {plan.parents,
                        plan.characters,
                        e.table.data(),
                        value(side, kRecurrent).data,
                        recurrent_[side].data(),
                        e.h.data(),
                        e.c.data(),
                        e.gates.data(),
                        {}};
  }
  return made;
}

Status RbsgSteps::climb_loss(const RbsgPlanned& batch) {
  const int64_t D = shape_.dim, centres = batch.sides[0].words, outputs = batch.sides[1].words, pool = batch.pool_size;
  const float scale = 1 / static_cast<float>(std::max(batch.pairs_count, 1));
  double* loss = &batch.card_result.data()->loss;
  const CardMatrix u = rows_of(encodings_[0].out.data(), centres, D), du = rows_of(encodings_[0].dout, centres, D);
  const CardMatrix v = rows_of(encodings_[1].out.data(), outputs, D), dv = rows_of(encodings_[1].dout, outputs, D);
  climb_pairs({u.data, v.data, du.data, dv.data, shape_.dim, scale, loss}, batch.pairs, batch.pairs_count, stream_);
  if (pool == 0) return {};
  STREAMVEC_RETURN_IF_ERROR(reserve(pooled_, static_cast<size_t>(pool * D)));
  STREAMVEC_RETURN_IF_ERROR(reserve(pooled_slopes_, static_cast<size_t>(pool * D)));
  STREAMVEC_RETURN_IF_ERROR(reserve(weights_, static_cast<size_t>(centres * pool)));
  STREAMVEC_RETURN_IF_ERROR(reserve(products_, static_cast<size_t>(centres * pool)));
  const CardMatrix pooled = rows_of(pooled_.data(), pool, D), products = rows_of(products_.data(), centres, pool);
  const CardMatrix slopes = rows_of(pooled_slopes_.data(), pool, D);
  gather_rows({{v.data}, {pooled.data}, {batch.pool}, {pool}, D}, stream_);
  STREAMVEC_RETURN_IF_ERROR(blas_->multiply(u, false, pooled, true, false, products));
  weigh_pool(batch.pairs, batch.pairs_count, batch.places, batch.pool_weights, batch.pool_size,
             static_cast<int32_t>(centres), counts_, weights_.data(), stream_);
  climb_pool(weights_.data(), centres * pool, scale, products.data, loss, stream_);
  STREAMVEC_RETURN_IF_ERROR(blas_->multiply(products, false, pooled, false, true, du));
  STREAMVEC_RETURN_IF_ERROR(blas_->multiply(products, true, u, false, false, slopes));
  add_to_rows({{slopes.data}, {dv.data}, {batch.pool}, {pool}, D}, stream_);
  return {};
}

Status RbsgSteps::backward(const RbsgPlanned& batch) {
  STREAMVEC_RETURN_IF_ERROR(go_beside());
  STREAMVEC_RETURN_IF_ERROR(climb_output(batch));
  STREAMVEC_RETURN_IF_ERROR(climb_levels(batch));
  STREAMVEC_RETURN_IF_ERROR(go_beside());
  STREAMVEC_RETURN_IF_ERROR(climb_tables(batch));
  STREAMVEC_RETURN_IF_ERROR(climb_recurrent(batch));
  return join();
}

// The states' slopes on the stream, the layer's own beside it.
Status RbsgSteps::climb_output(const RbsgPlanned& batch) {
  const int64_t H = shape_.hidden, D = shape_.dim;
  for (int side = 0; side < 2; ++side) {
    const Encoding& e = encodings_[side];
    const int64_t words = batch.sides[side].words;
    const CardMatrix dout = rows_of(e.dout, words, D);
    STREAMVEC_RETURN_IF_ERROR(
        blas_->multiply(dout, false, value(side, kOutput), true, false, rows_of(e.dwords.data(), words, H)));
    STREAMVEC_RETURN_IF_ERROR(
        blas_beside_->multiply(rows_of(e.words.data(), words, H), true, dout, false, true, slope(side, kOutput)));
  }
  add_column_sums(
      both_sides(
          D,
          [&](int side) {
            return SideRows{encodings_[side].dout, nullptr, batch.sides[side].words, slope(side, kOutputBias).data};
          }),
      beside_);
  add_to_rows(both_sides(H,
                         [&](int side) {
                           return SideRows{encodings_[side].dwords.data(), batch.sides[side].word_nodes,
                                           batch.sides[side].words, encodings_[side].dh};
                         }),
              stream_);
  return {};
}

Status RbsgSteps::climb_levels(const RbsgPlanned& batch) {
  const LstmLevel sides = lstm_sides(batch);
  LstmLevel leaves = sides;
  LstmSlopes slopes{};
  for (int side = 0; side < 2; ++side) {
    const Encoding& e = encodings_[side];
    slopes.dh[side] = e.dh;
    slopes.dc[side] = e.dc;
    slopes.dz[side] = e.dz.data();
    slopes.dz_sum[side] = e.dz_sum;
    leaves.sides[side].level = {0, 0, batch.sides[side].inner, batch.sides[side].nodes};
  }
  climb_lstm_leaves(leaves, slopes, stream_);
  for (size_t length = levels_of(batch) - 1; length >= 1; --length)
    STREAMVEC_CUDA_RETURN_IF_ERROR(climb_lstm_level(level_of(batch, length, sides), slopes, stream_));
  return {};
}

Status RbsgSteps::climb_recurrent(const RbsgPlanned& batch) {
  const int64_t H = shape_.hidden, G = shape_.gates() * H;
  // Not node 0, whose h is nothing.
  for (int side = 0; side < 2; ++side) {
    const Encoding& e = encodings_[side];
    const int64_t inner = batch.sides[side].inner - 1;
    STREAMVEC_RETURN_IF_ERROR(blas_->multiply(rows_of(e.h.data() + H, inner, H), true, rows_of(e.dz_sum + G, inner, G),
                                              false, true, slope(side, kRecurrent)));
  }
  return {};
}

// Of the table of characters and what it is made of; beside the stream.
Status RbsgSteps::climb_tables(const RbsgPlanned& batch) {
  const int64_t G = int64_t{shape_.gates()} * shape_.hidden, C = shape_.character_dim;
  const auto alphabet = [&](int side) -> int64_t { return batch.sides[side].alphabet_size; };
  BothSums sums{};
  sums.cols = static_cast<int32_t>(G);
  for (int side = 0; side < 2; ++side) {
    sums.dz[side] = encodings_[side].dz.data();
    sums.order[side] = batch.sides[side].order;
    sums.begins[side] = batch.sides[side].begins;
    sums.dtable[side] = encodings_[side].dtable;
    sums.alphabet[side] = batch.sides[side].alphabet_size;
  }
  sum_by_character(sums, beside_);
  for (int side = 0; side < 2; ++side) {
    const Encoding& e = encodings_[side];
    const CardMatrix letters = rows_of(e.letters.data(), alphabet(side), C),
                     dtable = rows_of(e.dtable, alphabet(side), G);
    STREAMVEC_RETURN_IF_ERROR(blas_beside_->multiply(letters, true, dtable, false, true, slope(side, kInput)));
    STREAMVEC_RETURN_IF_ERROR(blas_beside_->multiply(dtable, false, value(side, kInput), true, false,
                                                     rows_of(e.dletters.data(), alphabet(side), C)));
  }
  add_column_sums(
      both_sides(G,
                 [&](int side) {
                   return SideRows{encodings_[side].dtable, nullptr, alphabet(side), slope(side, kBias).data};
                 }),
      beside_);
  add_to_rows(both_sides(C,
                         [&](int side) {
                           return SideRows{encodings_[side].dletters.data(), batch.sides[side].alphabet, alphabet(side),
                                           slope(side, kCharacters).data};
                         }),
              beside_);
  return {};
}

Status RbsgSteps::step(const RbsgPlanned& batch) {
  ++steps_;
  BatchResult* result = batch.card_result.data();
  add_squares(buffers_[kSlopes].data(), size_, &result->square, stream_);
  if (!shape_.muon) {
    step_by_adam(batch, 0, size_, &result->refused);
  } else {
    STREAMVEC_RETURN_IF_ERROR(step_by_muon(batch));
    for (int side = 0; side < 2; ++side)
      for (const int part : {kCharacters, kBias, kOutputBias}) {
        const Place& place = places_[side][part];
        const bool first = side == 0 && part == kCharacters;
        step_by_adam(batch, place.begin, fours_of(place.rows * place.cols), first ? &result->refused : nullptr);
      }
  }
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return {};
}

// The two encoders' products side by side: each alone is too small for a card.
Status RbsgSteps::step_by_muon(const RbsgPlanned& batch) {
  const BatchResult* result = batch.card_result.data();
  STREAMVEC_RETURN_IF_ERROR(go_beside());
  for (const int part : kMatrixParts)
    for (int side = 0; side < 2; ++side)
      STREAMVEC_RETURN_IF_ERROR(muon_[side].step(
          side == 0 ? *blas_ : *blas_beside_, side == 0 ? stream_ : beside_, batch.lr,
          {value(side, part), matrix(kMeans, side, part), slope(side, part)}, {&result->square, &result->loss}));
  return join();
}

void RbsgSteps::step_by_adam(const RbsgPlanned& batch, int64_t begin, int64_t size, int32_t* refused) {
  constexpr double kBeta1 = 0.9f, kBeta2 = 0.999f;
  const double lr = batch.adam_lr;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(steps_));
  const double most = 1.1 * lr * (1 - kBeta1) / std::sqrt((1 - kBeta2) * (1 - kBeta1 * kBeta1 / kBeta2));
  const AdamNumbers numbers{static_cast<float>(lr / correction1), static_cast<float>(1 / std::sqrt(correction2)),
                            static_cast<float>(most)};
  const BatchResult* result = batch.card_result.data();
  adam(numbers, size, &result->square, &result->loss, buffers_[kSlopes].data() + begin, buffers_[kMeans].data() + begin,
       buffers_[kVariances].data() + begin, buffers_[kValues].data() + begin, refused, stream_);
}

}  // namespace streamvec::cuda
