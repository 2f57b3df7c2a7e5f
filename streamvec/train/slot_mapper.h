// From words to slots, for every thread: by a vocabulary that was counted before, or by one that grows on the way.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "streamvec/model/parameters.h"
#include "streamvec/model/window_plan.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/admission.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Thread-safe.
class SlotMapper {
 public:
  virtual ~SlotMapper() = default;
  // Fills `chunk` with the slots of the words that have one, and returns the tables to draw from; nullptr when there is
  // nothing to train on yet.
  virtual std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) = 0;
};

// Looks words up; `vocabulary` must not change meanwhile.
class FixedSlotMapper final : public SlotMapper {
 public:
  FixedSlotMapper(const Vocabulary& vocabulary, double sample);
  std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) override;

 private:
  const Vocabulary& vocabulary_;
  std::shared_ptr<const SamplingTables> tables_;
};

// Admits words as they become frequent enough and gives them rows. The tables to draw from are made anew when the
// vocabulary or its counts have grown by a tenth.
class GrowingSlotMapper final : public SlotMapper {
 public:
  GrowingSlotMapper(Vocabulary& vocabulary, Parameters& parameters, double sample, Admission::Options admission);
  std::shared_ptr<const SamplingTables> map(const Tokens& tokens, Chunk& chunk) override;

 private:
  void renew_tables();

  std::mutex mutex_;
  Vocabulary& vocabulary_;
  Parameters& parameters_;
  const double sample_;
  Admission admission_;
  std::shared_ptr<const SamplingTables> tables_;
  int64_t tables_words_ = 0, tables_tokens_ = 0;
};

}  // namespace streamvec
