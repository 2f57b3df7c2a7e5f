#include "streamvec/train/stream_model.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "streamvec/core/random.h"
#include "streamvec/model/spelling.h"
#include "streamvec/text/word_filter.h"
#include "streamvec/train/subword_state.h"
#include "streamvec/train/training_start.h"

namespace streamvec {
namespace {

constexpr uint64_t kHalfRows = 4;  // keeps the first rows of the halves apart from other draws
constexpr const char* kHalfNames[2] = {"half-a", "half-b"};
constexpr const char* kHalfSubwords = ".subword.buckets";
constexpr Slot kWordsOfAPart = 4'096;  // some 20 ms
constexpr std::chrono::milliseconds kBetweenParts{1};

// `spells`: the words' characters have rows that several nodes learn together.
StreamVocabulary::Options vocabulary_options(const TrainOptions& options, FormOf form_of, bool spells) {
  StreamVocabulary::Options limits;
  limits.min_count = options.min_count;
  limits.vocab_max = options.vocab_max;
  limits.half_life = options.stream.half_life.value;
  limits.half_life_seconds = options.stream.half_life.seconds;
  limits.form_of = std::move(form_of);
  limits.seed = options.seed;
  limits.slots_max = kTableRowsMax;
  if (spells) {
    limits.characters_of = append_own_characters;
    limits.characters_max = CharacterTable::Options().size_max - CharacterTable::kFixed;
  }
  return limits;
}

Result<StreamVocabulary> make_vocabulary(const StreamVocabulary::Options& limits,
                                         const std::optional<Checkpoint>& existing) {
  STREAMVEC_RETURN_IF_ERROR(StreamVocabulary::check_memory(limits));
  if (!existing) return StreamVocabulary(limits);
  if (const auto saved = existing->extra.find(kVocabularyState); saved != existing->extra.end())
    return StreamVocabulary::restore(limits, saved->second);
  return StreamVocabulary::from(limits, existing->vocabulary, 0);
}

std::map<std::string, Matrix> take_halves(Checkpoint& existing) {
  std::map<std::string, Matrix> saved;
  for (const char* name : kHalfNames)
    for (const char* table : {".input", ".output", kHalfSubwords})
      if (auto found = existing.optimizer.find(std::string(name) + table); found != existing.optimizer.end())
        saved[found->first] = std::move(found->second);
  return saved;
}

}  // namespace

Result<std::unique_ptr<StreamModel>> StreamModel::make(const TrainOptions& options, const std::string& kind,
                                                       int32_t threads, bool writes,
                                                       std::optional<Checkpoint>& existing) {
  STREAMVEC_ASSIGN_OR_RETURN(FormOf form_of, open_word_filter(options));
  const bool clustered = options.cluster.on();
  const StreamVocabulary::Options limits = vocabulary_options(options, std::move(form_of), clustered && kind == "rbsg");
  STREAMVEC_ASSIGN_OR_RETURN(StreamVocabulary words, make_vocabulary(limits, existing));
  StreamVocabulary own_words = clustered ? StreamVocabulary::follower(limits, words) : std::move(words);
  std::unique_ptr<StreamModel> model(
      new StreamModel(std::move(own_words), options.sample, row_pace_options(options, kind, stream_passes(options))));
  if (clustered && writes) model->shared.emplace(std::move(words));
  if (existing && existing->extra.count(kVocabularyState) > 0)
    if (const auto saved = existing->extra.find(kSamplingState); saved != existing->extra.end())
      STREAMVEC_RETURN_IF_ERROR(model->tables.restore(saved->second));
  STREAMVEC_RETURN_IF_ERROR(model->make_parameters(options, kind, threads, options.stream.drift && writes, existing));
  if (clustered && !writes && model->parameters.hybrid != nullptr)
    STREAMVEC_RETURN_IF_ERROR(model->parameters.hybrid->only_count());
  if (clustered && model->parameters.rbsg != nullptr) model->share_characters();
  return model;
}

Status StreamModel::make_parameters(const TrainOptions& options, const std::string& kind, int32_t threads,
                                    bool with_halves, std::optional<Checkpoint>& existing) {
  Parameters::Options shape;
  STREAMVEC_ASSIGN_OR_RETURN(shape.optimizer, row_optimizer(options, kind));
  shape.rows_max = options.vocab_max > 0 ? std::max<int64_t>(options.vocab_max, vocabulary.size()) : kTableRowsMax;
  shape.dim = options.dim.value_or(200);
  shape.seed = options.seed;
  shape.threads = threads;
  shape.glove = kind == "glove";
  std::map<std::string, Matrix> saved_halves;
  if (existing) saved_halves = take_halves(*existing);
  STREAMVEC_ASSIGN_OR_RETURN(parameters, existing ? parameters_from(*existing, shape) : Parameters::make(shape));
  parameters.grow(vocabulary.size());
  const Vocabulary words = vocabulary.to_vocabulary();
  own = make_model_state(kind);
  // One that joins a cluster hears from the others what was learnt.
  Checkpoint* const learnt = existing && !options.cluster.joins ? &*existing : nullptr;
  STREAMVEC_RETURN_IF_ERROR(own->begin(options, learnt, words, parameters));
  if (parameters.glove) {
    // Cells are counted where text is met for the first time (StreamLearner::Parts::watch), at its own time. Halves
    // would need a table of cells each: drift goes without its null.
    parameters.glove->counts_chunks = false;
    return {};
  }
  if (!with_halves || !own->has_halves()) return {};
  return make_halves(shape, words, std::move(saved_halves));
}

Status StreamModel::make_halves(const Parameters::Options& shape, const Vocabulary& words,
                                std::map<std::string, Matrix> saved) {
  for (int i = 0; i < 2; ++i) {
    Parameters::Options half_shape = shape;
    half_shape.dim = parameters.dim();
    half_shape.optimizer = OptimizerKind::kSgd;
    half_shape.rows = vocabulary.size();
    // Rows of their own to start from: what the halves then have in common, they have from the text.
    half_shape.seed = mix(shape.seed, kHalfRows, static_cast<uint64_t>(i));
    STREAMVEC_ASSIGN_OR_RETURN(halves_[i].emplace(), Parameters::make(half_shape));
    const auto input = saved.find(std::string(kHalfNames[i]) + ".input");
    const auto output = saved.find(std::string(kHalfNames[i]) + ".output");
    const auto ngrams = saved.find(std::string(kHalfNames[i]) + kHalfSubwords);
    if (parameters.subwords)
      STREAMVEC_RETURN_IF_ERROR(add_subwords_like(
          *parameters.subwords, ngrams != saved.end() ? &ngrams->second : nullptr, words, *halves_[i]));
    if (input == saved.end() || output == saved.end()) continue;
    halves_[i]->input.rows = std::move(input->second);
    halves_[i]->output.rows = std::move(output->second);
  }
  return {};
}

std::array<Parameters*, 2> StreamModel::halves() {
  return {halves_[0] ? &*halves_[0] : nullptr, halves_[1] ? &*halves_[1] : nullptr};
}

// They get rows in the order of the vocabulary from now on.
void StreamModel::share_characters() {
  parameters.rbsg->share_characters();
  const std::span<const char32_t> admitted = parameters.rbsg->characters().admitted();
  vocabulary.begin_characters(admitted);
  if (shared) shared->begin_characters(admitted);
  characters_told_ = admitted.size();
}

void StreamModel::tell_characters() {
  std::u32string next;
  for (const MetCharacter& met : vocabulary.characters().subspan(characters_told_)) next.push_back(met.character);
  characters_told_ += next.size();
  if (!next.empty()) parameters.rbsg->admit(next);
}

void StreamModel::start_rows(std::span<const Slot> slots) {
  if (parameters.rbsg != nullptr) tell_characters();
  for (const Slot slot : slots)
    for (Parameters* table : {&parameters, halves()[0], halves()[1]}) {
      if (table == nullptr) continue;
      const RowLocks::Guard guard(table->locks, std::span(&slot, 1), std::span(&slot, 1));
      table->restart(slot, vocabulary.born(slot) - 1);
      table->set_word(slot, vocabulary.word(slot));
    }
}

// Words are told in parts, since the thread that talks to the other nodes wants the lock, too.
void StreamModel::make_generator(const ModelState::LockWords& lock_words) {
  Hybrid* const hybrid = parameters.hybrid.get();
  if (hybrid == nullptr || hybrid->distils()) return;
  const uint64_t begun = vocabulary.stamp();
  for (Slot told = 0; !hybrid->distils(); std::this_thread::sleep_for(kBetweenParts)) {
    const auto lock = lock_words();
    const Slot end = std::min(told + kWordsOfAPart, vocabulary.size());
    for (; told < end; ++told) hybrid->restore_word(told, vocabulary.word(told));
    if (told < vocabulary.size()) continue;
    for (Slot slot = 0; slot < vocabulary.size(); ++slot)  // that have changed hands meanwhile
      if (vocabulary.born(slot) > begun) hybrid->restore_word(slot, vocabulary.word(slot));
    hybrid->begin_to_distil();
  }
  hybrid->finish(parameters);
}

Status StreamModel::fetch_rows() {
  for (Parameters* table : {&parameters, halves()[0], halves()[1]})
    if (table != nullptr) STREAMVEC_RETURN_IF_ERROR(table->fetch_rows());
  return {};
}

std::vector<NamedMatrix> StreamModel::tables_to_save() {
  std::vector<NamedMatrix> all = optimizer_tables(parameters);
  for (int i = 0; i < 2; ++i) {
    if (!halves_[i]) continue;
    all.push_back({std::string(kHalfNames[i]) + ".input", halves_[i]->input.rows.view()});
    all.push_back({std::string(kHalfNames[i]) + ".output", halves_[i]->output.rows.view()});
    if (halves_[i]->subwords)
      all.push_back({kHalfNames[i] + std::string(kHalfSubwords), halves_[i]->subwords->table.rows.view()});
  }
  return all;
}

}  // namespace streamvec
