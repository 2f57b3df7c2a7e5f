// From words to slots, for every thread: by a vocabulary that was counted before, or by one that grows on the way.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "streamvec/model/parameters.h"
#include "streamvec/model/window_plan.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/sampling_buffer.h"
#include "streamvec/vocab/stream_vocabulary.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Thread-safe.
class SlotMapper {
 public:
  virtual ~SlotMapper() = default;
  // Fills `chunk` with the slots of the words that have one, and returns the tables to draw from; nullptr when there is
  // nothing to train on yet.
  virtual std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) = 0;
  virtual int64_t slots() const = 0;  // that words have or had so far
  // The words by slot, for a checkpoint. The reference is good until the next call; nobody maps meanwhile.
  virtual const Vocabulary& vocabulary() = 0;
  // What else a checkpoint has to keep so that mapping goes on as it would have; "" nothing.
  virtual std::string state() const { return ""; }
};

// Looks words up; `vocabulary` must not change meanwhile.
class FixedSlotMapper final : public SlotMapper {
 public:
  FixedSlotMapper(const Vocabulary& vocabulary, double sample, const RowPace::Options& pace);
  std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) override;
  int64_t slots() const override { return vocabulary_.size(); }
  const Vocabulary& vocabulary() override { return vocabulary_; }

 private:
  const Vocabulary& vocabulary_;
  std::shared_ptr<const SamplingTables> tables_;
};

// Admits words as they become frequent enough and gives them rows; words that lose their slots to others lose their
// rows, too. A chunk that another thread has mapped but not trained on yet may still name such a slot: then a few
// steps of the old word's text reach the new word's row, as noise.
class GrowingSlotMapper final : public SlotMapper {
 public:
  GrowingSlotMapper(StreamVocabulary vocabulary, Parameters& parameters, double sample, const RowPace::Options& pace);
  std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) override;
  int64_t slots() const override;
  const Vocabulary& vocabulary() override;
  std::string state() const override;

 private:
  mutable std::mutex mutex_;
  StreamVocabulary vocabulary_;
  Parameters& parameters_;
  SamplingTablesBuffer tables_;
  std::vector<Slot> admitted_;
  Vocabulary words_;
};

}  // namespace streamvec
