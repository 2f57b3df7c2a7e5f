#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/sgns_batch.cuh"
#include "streamvec/cuda/sgns_tables.cuh"
#include "streamvec/cuda/sgns_trainer.h"

namespace streamvec::cuda {
namespace {

class CardTrainer final : public SgnsTrainer {
 public:
  CardTrainer(const SgnsOptions& options, const SgnsShape& shape, std::string card)
      : options_(options), shape_(shape), card_(std::move(card)), tables_(options, shape.stride) {}

  ~CardTrainer() override {
    if (compute_ != nullptr) cudaStreamSynchronize(compute_);
    if (copy_ != nullptr) cudaStreamSynchronize(copy_);
    for (Batch& batch : batches_)
      for (cudaEvent_t event : {batch.copied, batch.done})
        if (event != nullptr) cudaEventDestroy(event);
    for (cudaStream_t stream : {compute_, copy_})
      if (stream != nullptr) cudaStreamDestroy(stream);
  }

  Status begin() {
    STREAMVEC_CUDA_RETURN_IF_ERROR(prepare_sgns_kernel(shape_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&copy_, cudaStreamNonBlocking));
    STREAMVEC_RETURN_IF_ERROR(tables_.allocate(compute_));
    for (Batch& batch : batches_) STREAMVEC_RETURN_IF_ERROR(batch.allocate());
    // An empty run: kernels are brought to the card when they are first called.
    STREAMVEC_RETURN_IF_ERROR(launch(batches_[0]));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(compute_));
    return {};
  }

  std::string name() const override { return "cuda " + card_ + (options_.bf16 ? " bf16 tables" : ""); }

  Status put(MatrixView<const float> input, MatrixView<const float> output) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(note(tables_.put(SgnsTables::kInput, input)));
    return note(tables_.put(SgnsTables::kOutput, output));
  }

  Status put_sums(MatrixView<const float> input, MatrixView<const float> output) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(note(tables_.put_sums(SgnsTables::kInput, input)));
    return note(tables_.put_sums(SgnsTables::kOutput, output));
  }

  Status put_row(int64_t row, std::span<const float> input, std::span<const float> output) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(status_);
    Batch& batch = batches_[filling_];
    // A row that begins anew twice takes the place that it has: all of a batch are put at once.
    size_t place = 0;
    while (place < batch.rows && batch.updates[place].row != row) ++place;
    const size_t stride = static_cast<size_t>(shape_.stride), at = place * 2 * stride;
    STREAMVEC_RETURN_IF_ERROR(note(batch.values.allocate(kBatchRows * 2 * stride)));
    STREAMVEC_RETURN_IF_ERROR(note(batch.card_values.allocate(kBatchRows * 2 * stride)));
    std::fill_n(&batch.values[at], 2 * stride, 0.0f);
    std::copy(input.begin(), input.end(), &batch.values[at]);
    std::copy(output.begin(), output.end(), &batch.values[at + stride]);
    batch.updates[place] = {row, static_cast<int64_t>(at)};
    batch.rows = std::max(batch.rows, place + 1);
    return batch.rows == kBatchRows ? note(submit()) : Status();
  }

  Status set_tables(const SamplingTables& tables) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(status_);
    const std::span<const uint64_t> ends = tables.negatives.ends();
    const TablesId id{&tables, ends.data(), ends.size(), ends.empty() ? 0 : ends[ends.size() / 2]};
    if (id == tables_id_) return {};
    STREAMVEC_RETURN_IF_ERROR(finish());
    const std::vector<float2> crowds = crowds_of(tables, options_);
    STREAMVEC_RETURN_IF_ERROR(note(upload(tables.negatives.ends(), ends_, compute_)));
    STREAMVEC_RETURN_IF_ERROR(note(upload(tables.negatives.guide(), guide_, compute_)));
    STREAMVEC_RETURN_IF_ERROR(note(upload(tables.subsampling.thresholds(), thresholds_, compute_)));
    STREAMVEC_RETURN_IF_ERROR(note(upload(std::span<const float2>(crowds), crowds_, compute_)));
    std::vector<float2> paces(crowds.size());
    for (size_t slot = 0; slot < paces.size(); ++slot)
      paces[slot] = paces_of(tables, options_, static_cast<Slot>(slot));
    STREAMVEC_RETURN_IF_ERROR(note(upload(std::span<const float2>(paces), paces_, compute_)));
    pace_longest_ = paces_of(tables, options_, kNoSlot);
    shift_ = tables.negatives.shift();
    words_known_ = static_cast<int32_t>(crowds.size());
    tables_id_ = id;
    return {};
  }

  Status add(const Chunk& chunk, const SgnsManner& manner) override { return add_all(encoded(chunk), manner, nullptr); }
  Status add(const Chunk& chunk, float lr, uint64_t draw, uint64_t key) override {
    return add_all(encoded(chunk), {.lr = lr, .draw = draw}, &key);
  }

  bool known(uint64_t key) const override {
    const std::lock_guard lock(mutex_);
    return known_.contains(key);
  }

  bool keeps_all() const override {
    const std::lock_guard lock(mutex_);
    return all_kept_;
  }

  Status add_known(uint64_t key, float lr, uint64_t draw) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(status_);
    const KeptChunk chunk = known_.at(key);
    return note(add_segments(chunk.words, chunk.count, {.lr = lr, .draw = draw}));
  }

  Result<SgnsTotals> totals(bool all) override {
    const std::lock_guard lock(mutex_);
    if (all) STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(status_);
    for (Batch& batch : batches_)
      if (batch.in_work && cudaEventQuery(batch.done) == cudaSuccess) collect(batch);
    return std::exchange(totals_, SgnsTotals());
  }

  std::vector<SgnsTold> told() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  Status get(MatrixView<float> input, MatrixView<float> output) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(note(tables_.get(SgnsTables::kInput, input)));
    return note(tables_.get(SgnsTables::kOutput, output));
  }

  Status get_sums(MatrixView<float> input, MatrixView<float> output) override {
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(note(tables_.get_sums(SgnsTables::kInput, input)));
    return note(tables_.get_sums(SgnsTables::kOutput, output));
  }

 private:
  // A table that is made where an older one was differs from it in its middle.
  struct TablesId {
    const SamplingTables* tables = nullptr;
    const uint64_t* ends = nullptr;
    size_t size = 0;
    uint64_t middle = 0;
    bool operator==(const TablesId&) const = default;
  };
  struct KeptChunk {
    const uint32_t* words;
    int32_t count;
  };

  // What is longer than a batch can be is cut.
  Status add_all(std::span<const uint32_t> words, const SgnsManner& manner, const uint64_t* key) {
    const size_t most = std::min(kBatchWords, kBatchSegments * static_cast<size_t>(shape_.segment_words));
    const std::lock_guard lock(mutex_);
    STREAMVEC_RETURN_IF_ERROR(status_);
    if (words.size() <= most) return note(add_words(words, manner, key));
    all_kept_ = all_kept_ && key == nullptr;
    SgnsManner part = manner;
    for (size_t at = 0; at < words.size(); at += most) {
      part.draw = mix(manner.draw, at);
      STREAMVEC_RETURN_IF_ERROR(note(add_words(words.subspan(at, std::min(most, words.size() - at)), part, nullptr)));
    }
    return {};
  }

  // All of what follows under the lock.
  Status note(Status status) {
    if (!status.ok() && status_.ok()) status_ = status;
    return status;
  }

  Status add_words(std::span<const uint32_t> words, const SgnsManner& manner, const uint64_t* key) {
    if (batches_[filling_].words_count + words.size() > kBatchWords) STREAMVEC_RETURN_IF_ERROR(submit());
    STREAMVEC_RETURN_IF_ERROR(make_room(segments_of(words.size())));
    Batch& batch = batches_[filling_];
    if (batch.words_count == 0) choose_home(batch, key != nullptr);
    std::copy(words.begin(), words.end(), &batch.words[batch.words_count]);
    const uint32_t* home = batch.home + batch.words_count;
    const auto count = static_cast<int32_t>(words.size());
    batch.words_count += words.size();
    if (key != nullptr) keep(*key, {home, count}, batch.home != batch.card_words.data());
    return add_segments(home, count, manner);
  }

  void keep(uint64_t key, const KeptChunk& chunk, bool stays) {
    if (stays)
      known_[key] = chunk;
    else
      all_kept_ = false;
  }

  // Where a batch's words will lie: in memory of its own, which the next one takes over, or where they can stay.
  void choose_home(Batch& batch, bool keep) {
    batch.home = batch.card_words.data();
    if (!keep || keep_no_more_) return;
    if (slabs_.empty() || slab_used_ + kBatchWords > kSlabWords) {
      const size_t bytes = (slabs_.size() + 1) * kSlabWords * sizeof(uint32_t);
      CardBuffer<uint32_t> slab;
      if (bytes > static_cast<size_t>(options_.kept_bytes) || !slab.allocate(kSlabWords).ok()) {
        keep_no_more_ = true;
        return;
      }
      slabs_.push_back(std::move(slab));
      slab_used_ = 0;
    }
    batch.home = slabs_.back().data() + slab_used_;
  }

  size_t segments_of(size_t words) const {
    const auto most = static_cast<size_t>(shape_.segment_words);
    return (words + most - 1) / most;
  }

  // A chunk's segments go with its words: those that do not stay are overwritten once their batch is done.
  Status make_room(size_t segments) {
    return batches_[filling_].segments_count + segments > kBatchSegments ? submit() : Status();
  }

  Status add_segments(const uint32_t* words, int32_t count, const SgnsManner& manner) {
    if (count == 0) return {};  // a name without segments would have no room of its own
    const auto parts = static_cast<int32_t>(segments_of(static_cast<size_t>(count)));
    STREAMVEC_RETURN_IF_ERROR(make_room(static_cast<size_t>(parts)));
    Batch& batch = batches_[filling_];
    int32_t told = -1;
    if (manner.name) {
      STREAMVEC_RETURN_IF_ERROR(batch.told.allocate(kBatchSegments));
      STREAMVEC_RETURN_IF_ERROR(batch.card_told.allocate(kBatchSegments));
      told = static_cast<int32_t>(batch.names.size());
      batch.names.push_back(*manner.name);
    }
    const auto place = [&](int32_t part) { return static_cast<int32_t>(int64_t{count} * part / parts); };
    for (int32_t i = 0; i < parts; ++i)
      batch.segments[batch.segments_count++] = {words,     count,       place(i),     place(i + 1),
                                                manner.lr, manner.draw, manner.fresh, told};
    batch.work += static_cast<size_t>(count);
    const size_t enough = std::clamp(static_cast<size_t>(words_given_ / 4), kFirstBatchWords, kBatchWords);
    return batch.work >= enough || (options_.at_once && idle()) ? submit() : Status();
  }

  bool idle() const {
    return std::none_of(std::begin(batches_), std::end(batches_), [](const Batch& batch) {
      return batch.in_work && cudaEventQuery(batch.done) == cudaErrorNotReady;
    });
  }

  // Gives the batch at hand to the card, and waits for room for the next one.
  Status submit() {
    Batch& batch = batches_[filling_];
    if (batch.empty()) return {};
    const auto copy = [&](auto* to, const auto* from, size_t count) {
      return copy_later(Way::kToCard, to, from, count * sizeof(*from), copy_);
    };
    if (batch.words_count > 0) STREAMVEC_CUDA_RETURN_IF_ERROR(copy(batch.home, batch.words.data(), batch.words_count));
    if (batch.words_count > 0 && batch.home != batch.card_words.data()) slab_used_ += batch.words_count;
    STREAMVEC_CUDA_RETURN_IF_ERROR(copy(batch.card_segments.data(), batch.segments.data(), batch.segments_count));
    if (batch.rows > 0) {
      STREAMVEC_CUDA_RETURN_IF_ERROR(copy(batch.card_updates.data(), batch.updates.data(), batch.rows));
      STREAMVEC_CUDA_RETURN_IF_ERROR(
          copy(batch.card_values.data(), batch.values.data(), batch.rows * 2 * static_cast<size_t>(shape_.stride)));
    }
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(batch.copied, copy_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(compute_, batch.copied));
    STREAMVEC_RETURN_IF_ERROR(launch(batch));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventRecord(batch.done, compute_));
    batch.in_work = true;
    words_given_ += static_cast<int64_t>(batch.work);
    filling_ = (filling_ + 1) % kBatches;
    return empty_out(batches_[filling_]);
  }

  Status launch(Batch& batch) {
    const SgnsArguments arguments = arguments_of(batch);
    const size_t told = batch.names.size() * sizeof(ToldTotals);
    if (batch.rows > 0)
      STREAMVEC_CUDA_RETURN_IF_ERROR(launch_put_rows(
          arguments, batch.card_updates.data(), static_cast<int32_t>(batch.rows), batch.card_values.data(), compute_));
    if (told > 0) STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(batch.card_told.data(), 0, told, compute_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(batch.card_totals.data(), 0, sizeof(KernelTotals), compute_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(batch.next.data(), 0, sizeof(int32_t), compute_));
    if (arguments.lanes > 0) STREAMVEC_CUDA_RETURN_IF_ERROR(launch_sgns_kernel(arguments, arguments.lanes, compute_));
    if (told > 0)
      STREAMVEC_CUDA_RETURN_IF_ERROR(
          copy_later(Way::kFromCard, batch.told.data(), batch.card_told.data(), told, compute_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(
        copy_later(Way::kFromCard, batch.totals.data(), batch.card_totals.data(), sizeof(KernelTotals), compute_));
    return {};
  }

  SgnsArguments arguments_of(const Batch& batch) const {
    SgnsArguments arguments{};
    arguments.shape = shape_;
    arguments.inputs = shape_.inputs();
    arguments.outputs = shape_.outputs();
    arguments.input = tables_.rows(SgnsTables::kInput);
    arguments.output = tables_.rows(SgnsTables::kOutput);
    for (const auto side : {SgnsTables::kInput, SgnsTables::kOutput}) arguments.sums[side] = tables_.sums(side);
    arguments.per_value = 1.0f / static_cast<float>(options_.dim);
    arguments.thresholds = thresholds_.data();
    arguments.thresholds_count = words_known_;
    arguments.ends = ends_.data();
    arguments.guide = guide_.data();
    arguments.shift = shift_;
    arguments.stratum = std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(shape_.negatives);
    arguments.segment_negatives = shape_.segment_negatives();
    arguments.lanes = blocks_now();
    arguments.crowd_scale = static_cast<float>(blocks_now());
    arguments.crowds = crowds_.data();
    arguments.paces = paces_.data();
    arguments.pace_longest = pace_longest_;
    arguments.crowds_count = words_known_;
    arguments.step_max = options_.step_max;
    arguments.crowd_max = options_.crowd;
    arguments.segments = batch.card_segments.data();
    arguments.segments_count = static_cast<int32_t>(batch.segments_count);
    arguments.next_segment = batch.next.data();
    arguments.totals = batch.card_totals.data();
    arguments.told = batch.card_told.data();
    return arguments;
  }

  int32_t blocks_now() const {
    if (options_.words_per_block == 0) return options_.blocks;
    const auto earned =
        static_cast<int32_t>(std::min<int64_t>(words_given_ / options_.words_per_block, options_.blocks));
    return std::min(std::max(earned, kBlocksMin), options_.blocks);
  }

  Status empty_out(Batch& batch) {
    if (batch.in_work) {
      STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(batch.done));
      collect(batch);
    }
    batch.words_count = batch.segments_count = batch.rows = batch.work = 0;
    batch.names.clear();
    return {};
  }

  // REQUIRES: the batch is done.
  void collect(Batch& batch) {
    const KernelTotals& totals = batch.totals[0];
    totals_.pairs += static_cast<int64_t>(totals.pairs);
    totals_.refused += static_cast<int64_t>(totals.refused);
    totals_.loss += totals.loss;
    totals_.slope += totals.slope;
    totals_.fresh_pairs += static_cast<int64_t>(totals.fresh_pairs);
    totals_.fresh_loss += totals.fresh_loss;
    for (size_t i = 0; i < batch.names.size(); ++i)
      told_.push_back(
          {batch.names[i], static_cast<int64_t>(batch.told[i].pairs), batch.told[i].loss, batch.told[i].slope});
    batch.names.clear();
    batch.in_work = false;
  }

  Status finish() {
    STREAMVEC_RETURN_IF_ERROR(status_);
    STREAMVEC_RETURN_IF_ERROR(note(submit()));
    STREAMVEC_RETURN_IF_ERROR(note(status_of(cudaStreamSynchronize(compute_), "training")));
    for (Batch& batch : batches_)
      if (batch.in_work) collect(batch);
    return {};
  }

  const SgnsOptions options_;
  const SgnsShape shape_;
  const std::string card_;  // its name
  cudaStream_t compute_ = nullptr, copy_ = nullptr;
  mutable std::mutex mutex_;
  Status status_;  // the first error of the card
  SgnsTables tables_;
  CardBuffer<uint64_t> ends_;
  CardBuffer<Slot> guide_;
  CardBuffer<uint32_t> thresholds_;
  CardBuffer<float2> crowds_, paces_;
  float2 pace_longest_ = make_float2(1, 1);
  int32_t shift_ = 63, words_known_ = 0;
  TablesId tables_id_;
  Batch batches_[kBatches];
  size_t filling_ = 0;
  std::vector<CardBuffer<uint32_t>> slabs_;
  size_t slab_used_ = 0;
  int64_t words_given_ = 0;
  bool keep_no_more_ = false, all_kept_ = true;
  std::unordered_map<uint64_t, KeptChunk> known_;
  SgnsTotals totals_;
  std::vector<SgnsTold> told_;
};

// Segments are as long as the card's shared memory allows.
Result<SgnsShape> fitting_shape(const SgnsOptions& options, const Device& device) {
  constexpr int32_t kSegmentWordsMin = 64;
  SgnsShape shape = shape_of(options);
  while (sgns_block_memory(shape) > device.block_memory && shape.segment_words > kSegmentWordsMin)
    shape.segment_words /= 2;
  if (options.window > kWindowMax || options.centres > 32 || shape.inputs() + shape.outputs() > kRowsMax ||
      shape.stride > 1024 || sgns_block_memory(shape) > device.block_memory)
    return error(Code::kInvalidArgument, "a block of ", options.centres, " centres, window ", options.window, ", ",
                 options.negatives_shared, " shared negatives and dim ", options.dim, " does not fit ", device.name,
                 "; try --device cpu, or a smaller --window, --negatives, --batch or --dim");
  if (options.rows_max > int64_t{kSlotMask})
    return error(Code::kInvalidArgument, options.rows_max, " words are more than the card's ", kSlotMask,
                 "; try --vocab-max, or --device cpu");
  return shape;
}

}  // namespace

Result<std::unique_ptr<SgnsTrainer>> make_sgns_trainer(const SgnsOptions& given) {
  STREAMVEC_ASSIGN_OR_RETURN(const Device device, find_device());
  SgnsOptions options = given;
  if (options.blocks == 0) {
    options.blocks = device.multiprocessors;
    if (options.words > 0)
      options.blocks =
          static_cast<int32_t>(std::clamp<int64_t>(options.words / kTextPerBlock, kBlocksMin / 2, options.blocks));
  }
  if (options.crowd == 0) options.crowd = kCrowd;
  if (options.words_per_block < 0) options.words_per_block = kWordsPerBlock;
  STREAMVEC_ASSIGN_OR_RETURN(const SgnsShape shape, fitting_shape(options, device));
  auto trainer = std::make_unique<CardTrainer>(options, shape, device.name);
  STREAMVEC_RETURN_IF_ERROR(trainer->begin());
  return std::unique_ptr<SgnsTrainer>(std::move(trainer));
}

}  // namespace streamvec::cuda
