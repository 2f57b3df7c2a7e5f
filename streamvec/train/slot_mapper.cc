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

bool grown_by_a_tenth(int64_t before, int64_t now) {
  return now > before + before / 10;
}

}  // namespace

FixedSlotMapper::FixedSlotMapper(const Vocabulary& vocabulary, double sample)
    : vocabulary_(vocabulary), tables_(std::make_shared<SamplingTables>(vocabulary, sample)) {}

std::shared_ptr<const SamplingTables> FixedSlotMapper::map(const Tokens& tokens, Chunk& chunk) {
  chunk.slots.resize(tokens.words.size());
  vocabulary_.find(tokens.words, chunk.slots);
  leave_out_unknown(tokens, chunk);
  return tables_;
}

GrowingSlotMapper::GrowingSlotMapper(Vocabulary& vocabulary, Parameters& parameters, double sample,
                                     Admission::Options admission)
    : vocabulary_(vocabulary), parameters_(parameters), sample_(sample), admission_(std::move(admission)) {}

std::shared_ptr<const SamplingTables> GrowingSlotMapper::map(const Tokens& tokens, Chunk& chunk) {
  chunk.slots.resize(tokens.words.size());
  const std::lock_guard lock(mutex_);
  if (admission_.admit(tokens.words, vocabulary_, chunk.slots) > 0) parameters_.grow(vocabulary_.size());
  if (grown_by_a_tenth(tables_words_, vocabulary_.size()) || grown_by_a_tenth(tables_tokens_, vocabulary_.tokens()))
    renew_tables();
  leave_out_unknown(tokens, chunk);
  return tables_;
}

void GrowingSlotMapper::renew_tables() {
  tables_ = std::make_shared<SamplingTables>(vocabulary_, sample_);
  tables_words_ = vocabulary_.size();
  tables_tokens_ = vocabulary_.tokens();
}

}  // namespace streamvec
