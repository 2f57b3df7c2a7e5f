// What sgns_trainer.cu gives the card at once, and how text and tables are written for it. Of sgns_trainer.cu only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "streamvec/cuda/memory.cuh"
#include "streamvec/cuda/sgns_kernel.h"
#include "streamvec/cuda/sgns_trainer.h"

namespace streamvec::cuda {
namespace {

// A batch of work is given to the card when it has this much.
constexpr size_t kBatchWords = 1 << 21, kBatchSegments = kBatchWords / 256, kBatchRows = 1024;
constexpr size_t kBatches = 3;                  // one in work, one on its way, one being filled
constexpr size_t kSlabWords = 8 * kBatchWords;  // of text that stays
constexpr int32_t kWindowMax = 255, kRowsMax = 512;
constexpr int32_t kSegmentNegatives = 2048;  // about so many in a segment

// Chosen by MTurk-287, MTurk-771, MSR and the loss of training; docs/BENCHMARKS.md.
constexpr int32_t kBlocksMin = 8;
constexpr float kCrowd = 0.125f;
constexpr int64_t kWordsPerBlock = 1 << 17;
constexpr int64_t kTextPerBlock = 1 << 18;
constexpr size_t kFirstBatchWords = 1 << 17;  // batches grow with what was trained before

// How much the steps of a block weigh in a row on average, through the rate: of an input's pairs each has about 0.35
// for its positive and as much for its negatives; an output has one or the other. Counts are taken back from
// count^0.75. Of AdaGrad: how often a block has the row.
std::vector<float2> crowds_of(const SamplingTables& tables, const SgnsOptions& options) {
  constexpr double kSlope = 0.35, kPower = 1 / 0.75;
  const std::span<const uint64_t> ends = tables.negatives.ends();
  std::vector<double> negative(ends.size()), word(ends.size());
  double sum = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    negative[i] = static_cast<double>(ends[i] - (i > 0 ? ends[i - 1] : 0)) * 0x1p-64;
    word[i] = std::pow(negative[i], kPower) * tables.subsampling.probability(static_cast<Slot>(i));
    sum += word[i];
  }
  const double pairs = static_cast<double>(options.centres) * (options.window + 1) * kSlope;
  const double negatives = options.negatives_shared, columns = options.centres + 2.0 * options.window;
  std::vector<float2> crowds(ends.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    const double share = sum > 0 ? word[i] / sum : 0;
    crowds[i] = options.adagrad ? make_float2(static_cast<float>(columns * share),
                                              static_cast<float>(options.centres * share + negatives * negative[i]))
                                : make_float2(static_cast<float>(pairs * 2 * share),
                                              static_cast<float>(pairs * (share + negative[i])));
  }
  return crowds;
}

// The paces of a slot's rows; AdaGrad finds its rates itself.
float2 paces_of(const SamplingTables& tables, const SgnsOptions& options, Slot slot) {
  if (options.adagrad) return make_float2(1, 1);
  return make_float2(tables.pace.input(slot), tables.pace.output(slot));
}

// A sentence's number stands beside its words' slots; empty sentences have none, so that neighbours differ.
std::vector<uint32_t> encoded(const Chunk& chunk) {
  std::vector<uint32_t> words;
  words.reserve(chunk.slots.size());
  uint32_t sentence = 0;
  for (const int32_t end : chunk.sentence_ends) {
    const auto last = static_cast<size_t>(end);
    if (last > words.size()) ++sentence;
    while (words.size() < last)
      words.push_back((sentence << kSlotBits) | static_cast<uint32_t>(chunk.slots[words.size()]));
  }
  return words;
}

SgnsShape shape_of(const SgnsOptions& options) {
  SgnsShape shape{};
  shape.stride = static_cast<int32_t>((options.dim + 15) / 16 * 16);
  shape.window = options.window;
  shape.centres = options.centres;
  shape.negatives = options.negatives_shared;
  shape.share = static_cast<float>(options.negatives) / static_cast<float>(options.negatives_shared);
  const int32_t blocks = std::max(kSegmentNegatives / options.negatives_shared, 1);
  shape.segment_words = std::min(kSegmentWordsMax, blocks * options.centres);
  shape.kind = {options.bf16, options.adagrad};
  return shape;
}

// Work on its way to the card, or there.
struct Batch {
  PinnedBuffer<uint32_t> words;
  CardBuffer<uint32_t> card_words;
  PinnedBuffer<Segment> segments;
  CardBuffer<Segment> card_segments;
  PinnedBuffer<RowUpdate> updates;
  CardBuffer<RowUpdate> card_updates;
  PinnedBuffer<float> values;  // of the updates
  CardBuffer<float> card_values;
  PinnedBuffer<KernelTotals> totals;
  CardBuffer<KernelTotals> card_totals;
  PinnedBuffer<ToldTotals> told;  // of chunks with names
  CardBuffer<ToldTotals> card_told;
  std::vector<uint64_t> names;
  CardBuffer<int32_t> next;
  uint32_t* home = nullptr;  // of the words, once they are on the card
  size_t words_count = 0, segments_count = 0, rows = 0;
  size_t work = 0;  // words of all segments
  cudaEvent_t copied = nullptr, done = nullptr;
  bool in_work = false;

  Status allocate() {
    STREAMVEC_RETURN_IF_ERROR(words.allocate(kBatchWords));
    STREAMVEC_RETURN_IF_ERROR(card_words.allocate(kBatchWords));
    STREAMVEC_RETURN_IF_ERROR(segments.allocate(kBatchSegments));
    STREAMVEC_RETURN_IF_ERROR(card_segments.allocate(kBatchSegments));
    STREAMVEC_RETURN_IF_ERROR(updates.allocate(kBatchRows));
    STREAMVEC_RETURN_IF_ERROR(card_updates.allocate(kBatchRows));
    STREAMVEC_RETURN_IF_ERROR(totals.allocate(1));
    STREAMVEC_RETURN_IF_ERROR(card_totals.allocate(1));
    STREAMVEC_RETURN_IF_ERROR(next.allocate(1));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    return {};
  }
  bool empty() const { return segments_count == 0 && rows == 0; }
};

}  // namespace
}  // namespace streamvec::cuda
