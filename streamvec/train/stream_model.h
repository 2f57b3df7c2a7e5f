// What a stream has learnt: its words, their rows, and the two halves of the text that drift is judged by. Made anew or
// as a checkpoint left it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/model_state.h"
#include "streamvec/train/trainer.h"
#include "streamvec/vocab/sampling_buffer.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {

// The file of a checkpoint that has what a SamplingTablesBuffer keeps.
constexpr const char* kSamplingState = "sampling.bin";

class StreamModel {
 public:
  // `existing` gives its tables away. `writes`: of a cluster, the node that leads.
  static Result<std::unique_ptr<StreamModel>> make(const TrainOptions& options, const std::string& kind,
                                                   int32_t threads, bool writes, std::optional<Checkpoint>& existing);

  // Each nullptr where there are no halves.
  std::array<Parameters*, 2> halves();
  // Rows of words that are new, under the vocabulary's lock.
  void start_rows(std::span<const Slot> slots);
  // Of a cluster's node that comes to lead: the hybrid model's generator, which only the one that leads has, made of
  // rows, words and how often these were met. A second for 100,000 words; threads may read and train meanwhile.
  void make_generator(const ModelState::LockWords& lock_words);
  Status fetch_rows();  // of all tables, from the card
  // What a checkpoint has beside input and output rows. Views.
  std::vector<NamedMatrix> tables_to_save();

  StreamVocabulary vocabulary;
  SamplingTablesBuffer tables;
  Parameters parameters;
  std::unique_ptr<ModelState> own;  // what the model has beyond the parameters' tables
  // Of a cluster's node that leads: the vocabulary that all share. `vocabulary` follows it then, as on every node.
  std::optional<StreamVocabulary> shared;

 private:
  StreamModel(StreamVocabulary words, double sample, const RowPace::Options& pace)
      : vocabulary(std::move(words)), tables({.sample = sample, .pace = pace}) {}
  Status make_parameters(const TrainOptions& options, const std::string& kind, int32_t threads, bool with_halves,
                         std::optional<Checkpoint>& existing);
  void share_characters();
  void tell_characters();
  Status make_halves(const Parameters::Options& shape, const Vocabulary& words, std::map<std::string, Matrix> saved);

  std::optional<Parameters> halves_[2];
  size_t characters_told_ = 0;  // of those that nodes share, to the character model
};

}  // namespace streamvec
