// Text for the measures: read as the model's own training read it.
#pragma once

#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/sentences.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec::cli {

// How and on what a model was trained, as its state.json has it; defaults where it is silent (imported vectors).
struct TrainedOn {
  TokenizerOptions tokenizer;
  PairOptions pairs;
  std::vector<std::string> sources;
};
Result<TrainedOn> trained_on(const std::string& directory);

// The sources that the model was trained on, if every one can be read again; else an error that asks for --text.
Result<std::vector<std::string>> sources_still_there(const TrainedOn& trained, const std::string& directory);

// The sentences of these files as slots. `vocabulary` is borrowed.
SentenceStream sentences_of(std::vector<std::string> paths, TokenizerOptions tokenizer, const Vocabulary& vocabulary);

}  // namespace streamvec::cli
