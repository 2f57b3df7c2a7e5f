// All that a run begins with: the vocabulary, the tables and where the source stands, either new, or as a stopped run
// left them, or from an older model that goes on with new text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/format/safetensors.h"
#include "streamvec/model/model.h"
#include "streamvec/model/parameters.h"
#include "streamvec/optim/schedule.h"
#include "streamvec/source/source.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/cursor_trail.h"
#include "streamvec/train/model_state.h"
#include "streamvec/train/run_state.h"
#include "streamvec/train/slot_mapper.h"
#include "streamvec/train/trainer.h"
#include "streamvec/vocab/form.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Rows that tables may grow to where the vocabulary has no limit. Only address space is taken for them.
constexpr int64_t kTableRowsMax = int64_t{1} << 21;

struct TrainingStart {
  std::unique_ptr<Source> source;  // stands where training begins
  std::string model;
  double lr = 0;
  Schedule schedule = Schedule::kLinear;
  int32_t threads = 1;
  Vocabulary vocabulary;
  Parameters parameters;
  std::unique_ptr<ModelState> own;  // what the model has beyond the parameters' tables
  bool growing = false;             // the vocabulary grows on the way
  FormOf form_of;                   // for a growing one
  std::string vocabulary_state;     // of a growing one that is continued; "" none
  RunState state;
  int64_t epoch_pieces = -1;     // of text in an epoch, where it was counted; -1 not known
  int64_t first_piece = 0;       // with which this run begins, over all epochs
  CursorTrail trail;             // of a cluster: where the pieces of its text begin
  nlohmann::json description;    // describe_run()
  nlohmann::json stream_places;  // where the sources of a stream stood that the model was trained on before; null: none
  std::vector<float> row_pulls;  // of a cluster (SyncOptions::pull)
  std::vector<std::string> notes;
  bool cancelled = false;  // hooks.stop was set before training could begin

  // What a run of `epochs` reports at `state`; the caller adds fraction, rate and kernel.
  TrainProgress progress(const RunState& state, double loss, int32_t epochs) const;
  // What a checkpoint says of the sources when this run's stands at `cursor`.
  nlohmann::json cursors_at(const std::string& cursor) const;
  // Borrows vocabulary and parameters: this must stay where it is then.
  Result<std::unique_ptr<SlotMapper>> make_mapper(const TrainOptions& options);
};

// The file of a checkpoint that has a StreamVocabulary's state.
constexpr const char* kVocabularyState = "vocabulary.bin";

// What a stream's training begins with is put together from the same parts:
// Stop words, stems and lemmas as the options have them; empty when there are none.
Result<FormOf> open_word_filter(const TrainOptions& options);
// What the directory holds, with tables that have room to grow; nullopt when it holds no model.
Result<std::optional<Checkpoint>> load_existing(const std::string& out);
// kFailedPrecondition with both values when the options ask for another model or dim than the checkpoint's.
Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out);
// Why there is no model.
Status no_word(const std::string& source, int64_t tokens, int64_t min_count);
// Where the sources of a stream stood, by a checkpoint of the stream or of a run of files since then; null: nowhere.
nlohmann::json stream_places_of(const Checkpoint& existing);
// Moves what a checkpoint holds into new parameters. Optimiser state of another kind is left behind.
Result<Parameters> parameters_from(Checkpoint& existing, Parameters::Options options);
// kInvalidArgument for an optimiser that is not of this model.
Status check_optimizer(const TrainOptions& options, const std::string& model);
// That of the tables' rows; rbsg's are not trained.
Result<OptimizerKind> row_optimizer(const TrainOptions& options, const std::string& model);
// How much longer the first steps are where it trains, when no rate is given: a card shortens those of frequent words
// (cuda/sgns_trainer.h). docs/BENCHMARKS.md says how it was found.
double rate_of_device(const TrainOptions& options, const std::string& model);
// How long the steps of rare words' rows are, where training goes `passes` times over what is counted: skip-gram's by
// plain SGD, on tables of its own or hybrid's. Other optimisers find rows' rates themselves, and n-grams are not rare.
RowPace::Options row_pace_options(const TrainOptions& options, const std::string& model, double passes);
// Where there are such rows, describe_run() has them, too.
void describe_pace(const TrainOptions& options, const std::string& model, nlohmann::json& description);
// How many passes to say where text is read once and the rate does not fall, so that long steps leave noise behind: as
// if each occurrence of those counted so far were trained on four times as often as it is.
constexpr double kPassesOfConstantRate = 4;
inline double stream_passes(const TrainOptions& options) {
  return kPassesOfConstantRate * options.stream.replay_ratio;
}
// How the model's workers are to be, for a run on `threads` threads.
ModelOptions model_options(const TrainOptions& options, const std::string& model, int32_t threads);
// What a checkpoint keeps beside input and output.
std::vector<NamedMatrix> optimizer_tables(Parameters& parameters);

// kInvalidArgument for values outside what can be trained with; the message names the option.
Status check_options(const TrainOptions& options);

// What a run comes to that ended before it began, with why it did.
inline TrainProgress nothing_done(std::string note) {
  TrainProgress nothing;
  nothing.notes = {std::move(note)};
  return nothing;
}

Result<TrainingStart> prepare(const TrainOptions& options, const std::vector<std::string>& source_names,
                              std::unique_ptr<Source> source, const std::string& out,
                              std::optional<Checkpoint> existing, const TrainHooks& hooks);

}  // namespace streamvec
