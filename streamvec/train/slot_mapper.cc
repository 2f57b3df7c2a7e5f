#include "streamvec/train/slot_mapper.h"

namespace streamvec {
namespace {

// Drops the words without a slot and moves the sentence ends accordingly. chunk.slots holds one slot a word.
void leave_out_unknown(const Tokens& tokens, Chunk& chunk) {
  chunk.sentence_ends.clear();
  size_t from = 0, to = 0;
  for (int32_t end : tokens.sentence_ends) {
    for (; from < static_cast<size_t>(end); ++from)
      if (chunk.slots[from] != kNoSlot) chunk.slots[to++] = chunk.slots[from];
    chunk.sentence_ends.push_back(static_cast<int32_t>(to));
  }
  chunk.slots.resize(to);
}

}  // namespace

FixedSlotMapper::FixedSlotMapper(const Vocabulary& vocabulary, double sample, const RowPace::Options& pace)
    : vocabulary_(vocabulary), tables_(std::make_shared<SamplingTables>(vocabulary, sample, pace)) {}

std::shared_ptr<const SamplingTables> FixedSlotMapper::map(const Tokens& tokens, Chunk& chunk) {
  chunk.slots.resize(tokens.words.size());
  vocabulary_.find(tokens.words, chunk.slots);
  leave_out_unknown(tokens, chunk);
  return tables_;
}

GrowingSlotMapper::GrowingSlotMapper(StreamVocabulary vocabulary, Parameters& parameters, double sample,
                                     const RowPace::Options& pace)
    : vocabulary_(std::move(vocabulary)), parameters_(parameters), tables_({.sample = sample, .pace = pace}) {}

std::shared_ptr<const SamplingTables> GrowingSlotMapper::map(const Tokens& tokens, Chunk& chunk) {
  chunk.slots.resize(tokens.words.size());
  const std::lock_guard lock(mutex_);
  admitted_.clear();
  vocabulary_.map(tokens.words, 0, chunk.slots, admitted_);
  for (const Slot slot : admitted_) {
    const RowLocks::Guard guard(parameters_.locks, std::span(&slot, 1), std::span(&slot, 1));
    parameters_.restart(slot, vocabulary_.born(slot) - 1);
    parameters_.set_word(slot, vocabulary_.word(slot));
  }
  if (tables_.stage(vocabulary_)) tables_.build();
  leave_out_unknown(tokens, chunk);
  return tables_.tables();
}

int64_t GrowingSlotMapper::slots() const {
  const std::lock_guard lock(mutex_);
  return vocabulary_.size();
}

const Vocabulary& GrowingSlotMapper::vocabulary() {
  const std::lock_guard lock(mutex_);
  words_ = vocabulary_.to_vocabulary();
  return words_;
}

std::string GrowingSlotMapper::state() const {
  const std::lock_guard lock(mutex_);
  return vocabulary_.save();
}

}  // namespace streamvec
