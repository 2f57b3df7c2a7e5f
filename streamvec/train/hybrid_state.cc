#include "streamvec/train/hybrid_state.h"

#include <utility>

namespace streamvec {
namespace {

Result<std::unique_ptr<Hybrid>> restored(Checkpoint& existing, const std::string& directory, int64_t words_max) {
  const auto state = existing.extra.find(kHybridFile);
  if (state == existing.extra.end())
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " is of a hybrid model and has no ",
                 kHybridFile);
  auto hybrid = Hybrid::restore(state->second, directory + "/" + kHybridFile, words_max,
                                existing.optimizer[kHybridNgrams].view(), existing.optimizer[kHybridDuals].view());
  for (const char* table : {kHybridNgrams, kHybridDuals}) existing.optimizer.erase(table);
  return hybrid;
}

// Rows that a card or other nodes train as well cannot be followed move by move; of streams docs/BENCHMARKS.md (Moves
// that words share) says why.
bool is_taught_by_moves(const TrainOptions& options) {
  return !options.stream.on && !options.cluster.on() && options.device != "cuda";
}

}  // namespace

// One that joins a cluster takes no rows from a checkpoint, which then has none.
Status HybridState::take_rows(Checkpoint& existing) const {
  if (existing.input.rows() == 0 || existing.optimizer.count(kHybridWords) == 0) return {};
  return take_table(kHybridWords, existing);
}

Status HybridState::begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                          Parameters& parameters) const {
  Hybrid::Options shape;
  shape.dim = parameters.dim();
  shape.words_max = parameters.input.rows.rows_max();
  shape.fold_case = options.tokenizer.fold_case;
  if (is_taught_by_moves(options)) shape.bag = Hybrid::moved_bag();
  int64_t known = 0;
  bool begins_anew = false;
  if (existing != nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(parameters.hybrid, restored(*existing, std::to_string(existing->step), shape.words_max));
    begins_anew = parameters.hybrid->by_moves() && !shape.bag.by_moves;
    if (begins_anew) {
      STREAMVEC_ASSIGN_OR_RETURN(parameters.hybrid, parameters.hybrid->to_be_taught_by_rows());
    }
    known = parameters.hybrid->words();
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(parameters.hybrid, Hybrid::make(shape));
  }
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) {
    if (slot < known)
      parameters.hybrid->restore_word(slot, vocabulary.word(slot));
    else
      parameters.set_word(slot, vocabulary.word(slot));
  }
  if (begins_anew) parameters.hybrid->finish(parameters);
  if (existing == nullptr || !parameters.hybrid->by_moves()) return {};
  const Status restored = parameters.hybrid->restore_composed(existing->optimizer[kHybridComposed].view(), parameters);
  existing->optimizer.erase(kHybridComposed);
  return restored;
}

void HybridState::finish(Parameters& parameters) const {
  parameters.hybrid->finish(parameters);
}

Result<Matrix> HybridState::input_rows(Parameters& parameters, int64_t rows) const {
  if (parameters.hybrid == nullptr) return ModelState::input_rows(parameters, rows);  // a half of the stream
  parameters.hybrid->note_common(parameters);
  return parameters.hybrid->served_rows(parameters, rows);
}

Status HybridState::add_to(CheckpointContent& content, Parameters& parameters) {
  Hybrid& hybrid = *parameters.hybrid;
  hybrid.note_common(parameters);
  if (hybrid.by_moves()) {
    content.input_change = hybrid.narrowing();
  } else {
    STREAMVEC_ASSIGN_OR_RETURN(served_, hybrid.served_rows(parameters, content.vocabulary.size()));
    content.input = std::as_const(served_).view();
  }
  content.optimizer.push_back({kHybridWords, std::as_const(parameters.input.rows).view()});
  // Goes with the content: the bag stays as it is until then.
  const auto saved = std::make_shared<const Hybrid::Saved>(hybrid.save());
  content.optimizer.push_back({kHybridNgrams, saved->rows});
  content.optimizer.push_back({kHybridDuals, saved->duals});
  if (saved->composed.rows > 0) content.optimizer.push_back({kHybridComposed, saved->composed});
  content.extra.push_back({kHybridFile, [saved](const auto& sink) { return sink(saved->state); }});
  return {};
}

Result<std::shared_ptr<const WordGenerator>> HybridState::spellings(Parameters& parameters, const LockWords&) const {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Hybrid> copy, parameters.hybrid->copy_spellings());
  return std::shared_ptr<const WordGenerator>(std::make_shared<HybridVectors>(std::move(copy)));
}

bool HybridState::is_for_queries(std::string_view name) const {
  return name == kHybridNgrams || name == kHybridFile;
}

Result<std::shared_ptr<const WordGenerator>> HybridState::generator(Checkpoint& loaded,
                                                                    const std::string& directory) const {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Hybrid> hybrid, restored(loaded, directory, loaded.vocabulary.size()));
  return std::shared_ptr<const WordGenerator>(std::make_shared<HybridVectors>(std::move(hybrid)));
}

}  // namespace streamvec
