#include "streamvec/train/subword_state.h"

#include <algorithm>

namespace streamvec {
namespace {

Result<SubwordIndex> index_of(const Checkpoint& existing) {
  const auto found = existing.extra.find(kSubwordFile);
  if (found == existing.extra.end())
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " is of a subword model and has no ",
                 kSubwordFile);
  return SubwordIndex::decode(found->second, kSubwordFile);
}

// Rows of optimiser state are those of the table, which has room to grow.
void copy_rows(const Matrix& from, Matrix& to) {
  for (int64_t i = 0; i < std::min(from.rows(), to.rows()); ++i)
    std::copy_n(from.row(i), std::min(from.cols(), to.cols()), to.row(i));
}

std::string settings_text(const NgramOptions& ngrams) {
  return "--minn " + std::to_string(ngrams.minn) + " --maxn " + std::to_string(ngrams.maxn) + " --bucket " +
         std::to_string(ngrams.bucket) + (ngrams.jamo ? " --jamo" : "");
}

std::string state_name(const std::string& state) {
  return kSubwordBuckets + ("." + state);
}

Status adopt_rows(Checkpoint& existing, const SubwordIndex& index, SubwordTable& subwords) {
  STREAMVEC_RETURN_IF_ERROR(subwords.adopt(index.buckets, existing.optimizer[kSubwordBuckets]));
  existing.optimizer.erase(kSubwordBuckets);
  for (const Optimizer::State& state : subwords.table.optimizer->states())
    if (const auto found = existing.optimizer.find(state_name(state.name)); found != existing.optimizer.end())
      copy_rows(found->second, *state.values);
  return {};
}

// What the options say, and `otherwise` where they are silent.
NgramOptions wanted_ngrams(const TrainOptions& options, NgramOptions otherwise) {
  return {options.minn.value_or(otherwise.minn), options.maxn.value_or(otherwise.maxn),
          options.bucket.value_or(otherwise.bucket), options.jamo.value_or(otherwise.jamo)};
}

}  // namespace

Status SubwordState::check_options(const TrainOptions& options) const {
  return check_ngrams(wanted_ngrams(options, NgramOptions()));
}

Status SubwordState::check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const {
  STREAMVEC_ASSIGN_OR_RETURN(const SubwordIndex index, index_of(existing));
  const NgramOptions wanted = wanted_ngrams(options, index.ngrams);
  if (wanted == index.ngrams) return {};
  return error(Code::kFailedPrecondition, out, " has n-grams of ", settings_text(index.ngrams), ", asked for were ",
               settings_text(wanted), "; leave them out or choose another --out");
}

Status SubwordState::take_rows(Checkpoint& existing) const {
  return take_table(kSubwordWords, existing);
}

Status SubwordState::begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                           Parameters& parameters) const {
  SubwordIndex index;
  index.fold_case = options.tokenizer.fold_case;
  if (existing != nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(index, index_of(*existing));
  }
  SubwordTable::Options shape;
  shape.ngrams = existing != nullptr ? index.ngrams : wanted_ngrams(options, index.ngrams);
  shape.dim = parameters.dim();
  shape.optimizer = parameters.options.optimizer;
  shape.seed = options.seed;
  shape.words_max = parameters.input.rows.rows_max();
  shape.fold_case = index.fold_case;
  STREAMVEC_ASSIGN_OR_RETURN(parameters.subwords, SubwordTable::make(shape));
  if (existing != nullptr) STREAMVEC_RETURN_IF_ERROR(adopt_rows(*existing, index, *parameters.subwords));
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) parameters.subwords->set_word(slot, vocabulary.word(slot));
  return {};
}

Result<Matrix> SubwordState::input_rows(Parameters& parameters, int64_t rows) const {
  return composed_rows(parameters, rows);
}

Status add_subwords_like(const SubwordTable& other, const Matrix* saved, const Vocabulary& vocabulary,
                         Parameters& parameters) {
  SubwordTable::Options shape = other.options();
  shape.optimizer = parameters.options.optimizer;
  STREAMVEC_ASSIGN_OR_RETURN(parameters.subwords, SubwordTable::make(shape));
  const std::span<const uint32_t> buckets = other.buckets();
  if (saved != nullptr && saved->rows() <= static_cast<int64_t>(buckets.size()))
    STREAMVEC_RETURN_IF_ERROR(parameters.subwords->adopt(buckets.first(static_cast<size_t>(saved->rows())), *saved));
  parameters.subwords->add_buckets(buckets);
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) parameters.subwords->set_word(slot, vocabulary.word(slot));
  return {};
}

Status SubwordState::add_to(CheckpointContent& content, Parameters& parameters) {
  SubwordTable& subwords = *parameters.subwords;
  STREAMVEC_ASSIGN_OR_RETURN(composed_, input_rows(parameters, parameters.rows()));
  content.input = std::as_const(composed_).view();
  content.optimizer.push_back({kSubwordWords, parameters.input.rows.view()});
  content.optimizer.push_back({kSubwordBuckets, subwords.table.rows.view()});
  for (const Optimizer::State& state : subwords.table.optimizer->states())
    content.optimizer.push_back({state_name(state.name), state.values->view()});
  add_index(content, {subwords.options().ngrams,
                      subwords.options().fold_case,
                      {subwords.buckets().begin(), subwords.buckets().end()}});
  return {};
}

Status SubwordState::add_to(CheckpointContent& content, const Snapshot& snapshot) {
  const auto* subwords = dynamic_cast<const SubwordVectors*>(snapshot.generator.get());
  if (subwords == nullptr || subwords->words().rows() == 0) return {};
  content.optimizer.push_back({kSubwordWords, subwords->words().view()});
  content.optimizer.push_back({kSubwordBuckets, subwords->rows().view()});
  add_index(content, subwords->index());
  return {};
}

void SubwordState::add_index(CheckpointContent& content, const SubwordIndex& index) {
  index_ = index.encode();
  content.extra.push_back({kSubwordFile, [this](const auto& sink) { return sink(index_); }});
}

Result<std::shared_ptr<const WordGenerator>> SubwordState::spellings(Parameters& parameters,
                                                                     const LockWords& lock_words) const {
  std::vector<uint32_t> buckets;
  {
    const auto lock = lock_words();
    buckets.assign(parameters.subwords->buckets().begin(), parameters.subwords->buckets().end());
  }
  STREAMVEC_ASSIGN_OR_RETURN(auto copy, copy_spellings(parameters, std::move(buckets)));
  return std::shared_ptr<const WordGenerator>(std::move(copy));
}

bool SubwordState::is_for_queries(std::string_view name) const {
  return name == kSubwordWords || name == kSubwordBuckets || name == kSubwordFile;
}

Result<std::shared_ptr<const WordGenerator>> SubwordState::generator(Checkpoint& loaded,
                                                                     const std::string& directory) const {
  const auto index_bytes = loaded.extra.find(kSubwordFile);
  if (index_bytes == loaded.extra.end()) return std::shared_ptr<const WordGenerator>();
  const std::string path = directory + "/" + kSubwordFile;
  STREAMVEC_ASSIGN_OR_RETURN(SubwordIndex index, SubwordIndex::decode(index_bytes->second, path));
  auto made = SubwordVectors::make(std::move(index), std::move(loaded.optimizer[kSubwordBuckets]),
                                   std::move(loaded.optimizer[kSubwordWords]));
  if (!made.ok()) return error(Code::kDataLoss, path, ": ", made.status().message());
  return std::shared_ptr<const WordGenerator>(std::move(*made));
}

}  // namespace streamvec
