#include "streamvec/model/rbsg.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "streamvec/core/memory.h"
#include "streamvec/kernel/int8_lstm.h"
#include "streamvec/kernel/row_ops.h"
#include "streamvec/model/embed_words.h"

namespace streamvec {
namespace {

constexpr const char* kSideNames[] = {kRbsgCentre, kRbsgContext};
// What Muon steps, by place in EncoderParameters::all(): input, recurrent, output.
constexpr size_t kMatrices[] = {1, 2, 4};
// The rate of biases and characters, which Adam steps beside it, to Muon's.
constexpr float kAdamBesideMuon = 0.25f;

bool is_matrix(size_t place) {
  return std::find(std::begin(kMatrices), std::end(kMatrices), place) != std::end(kMatrices);
}

EncoderShape shape_of(const RbsgOptions& options) {
  return {.characters = CharacterTable::kFixed,
          .characters_max = options.characters.size_max,
          .character_dim = options.character_dim,
          .hidden = options.hidden,
          .dim = options.dim,
          .cell = options.cell};
}

// Both encoders with Adam's two moments, and a slope of each for every thread.
Status check_rbsg_memory(const RbsgOptions& options) {
  const double hidden = options.hidden, gates = 4 * hidden;
  const double values = (hidden + options.character_dim) * gates + hidden * options.dim;
  return check_memory("encoders of --hidden " + std::to_string(options.hidden) + " and --char-dim " +
                          std::to_string(options.character_dim) + " on " + std::to_string(options.threads) + " threads",
                      2 * (3.0 + options.threads) * values * sizeof(float), "smaller ones, or fewer --threads");
}

// Spellings, one after another: far quicker to copy than a vector each.
class SpellingsCopy {
 public:
  explicit SpellingsCopy(std::span<const Spelling> spellings) : ends_(spellings.size()) {
    size_t size = 0;
    for (const Spelling& spelling : spellings) size += spelling.size();
    characters_.reserve(size);
    for (size_t i = 0; i < spellings.size(); ++i) {
      characters_.insert(characters_.end(), spellings[i].begin(), spellings[i].end());
      ends_[i] = characters_.size();
    }
  }
  std::vector<std::span<const CharacterId>> views() const {
    std::vector<std::span<const CharacterId>> views(ends_.size());
    for (size_t i = 0, begin = 0; i < ends_.size(); begin = ends_[i++])
      views[i] = std::span(characters_).subspan(begin, ends_[i] - begin);
    return views;
  }

 private:
  std::vector<CharacterId> characters_;
  std::vector<size_t> ends_;
};

}  // namespace

Result<std::unique_ptr<Rbsg>> Rbsg::make(const RbsgOptions& options) {
  if (options.threads < 1 || options.negatives < 0)
    return error(Code::kInvalidArgument, "rbsg cannot run with ", options.threads, " threads and ", options.negatives,
                 " negatives");
  STREAMVEC_RETURN_IF_ERROR(check_rbsg_memory(options));
  std::unique_ptr<Rbsg> made(new Rbsg(options));
  STREAMVEC_RETURN_IF_ERROR(made->allocate());
  if (options.cuda) STREAMVEC_RETURN_IF_ERROR(made->find_card());
  return made;
}

Rbsg::Rbsg(const RbsgOptions& options)
    : options_(options),
      characters_(options.characters),
      lanes_(static_cast<size_t>(options.threads)),
      team_(options.threads) {}

Status Rbsg::allocate() {
  STREAMVEC_ASSIGN_OR_RETURN(products_, make_packed_gemm(options_.kernel));
  embeds_in_int8_ = options_.kernel == "auto" && options_.cell == RecurrentCell::kLstm && cpu_has_amx_int8();
  const EncoderShape shape = shape_of(options_);
  for (int side : {kCentre, kContext}) {
    Encoder& encoder = encoders_[side];
    for (EncoderParameters* part : {&encoder.values, &encoder.mean, &encoder.variance}) {
      STREAMVEC_ASSIGN_OR_RETURN(*part, EncoderParameters::make(shape));
    }
    encoder.values.draw(mix(options_.seed, static_cast<uint64_t>(side)));
    for (Lane& lane : lanes_) {
      lane.sides[side].lstm.emplace(products_);
      STREAMVEC_ASSIGN_OR_RETURN(lane.sides[side].slopes, EncoderParameters::make(shape));
    }
  }
  STREAMVEC_ASSIGN_OR_RETURN(steps_, Matrix::make(1, 1));
  if (options_.muon) {
    const bool reference = options_.kernel == "reference";
    STREAMVEC_ASSIGN_OR_RETURN(products_in_f32_, make_packed_gemm(reference ? "reference" : "simd"));
    muon_.emplace(products_in_f32_, team_);
  }
  return {};
}

void Rbsg::set_word(Slot slot, std::string_view word) {
  const std::lock_guard lock(told_mutex_);
  told_words_.emplace_back(slot, word);
}

void Rbsg::admit(std::u32string_view characters) {
  const std::lock_guard lock(told_mutex_);
  told_characters_.append(characters);
}

void Rbsg::share_characters() {
  const std::unique_lock lock = lock_told();
  shares_characters_ = true;
  for (int side : {kCentre, kContext})
    encoders_[side].values.draw_all_characters(mix(options_.seed, static_cast<uint64_t>(side)));
}

// To all that words and characters are asked of: what was told by now counts.
std::unique_lock<std::mutex> Rbsg::lock_told() {
  std::unique_lock lock(mutex_);
  take_told();
  return lock;
}

void Rbsg::take_told() {
  std::vector<std::pair<Slot, std::string>> words;
  {
    const std::lock_guard lock(told_mutex_);
    words.swap(told_words_);
    characters_.admit(std::exchange(told_characters_, {}));
  }
  for (const auto& [slot, word] : words) {
    if (!shares_characters_) characters_.admit(std::string_view(word));
    if (static_cast<size_t>(slot) >= spellings_.size()) spellings_.resize(static_cast<size_t>(slot) + 1);
    characters_.spell(word, spellings_[static_cast<size_t>(slot)]);
  }
  grow_characters();
}

const CharacterTable& Rbsg::characters() {
  const std::unique_lock lock = lock_told();
  return characters_;
}

void Rbsg::grow_characters() {
  const int32_t size = characters_.size();
  if (encoders_[kCentre].values.characters.rows() == size) return;
  come_back();
  const std::unique_lock values_lock = lock_values();
  for (int side : {kCentre, kContext}) {
    Encoder& encoder = encoders_[side];
    encoder.values.grow(size, mix(options_.seed, static_cast<uint64_t>(side)));
    encoder.mean.characters.grow(size);
    encoder.variance.characters.grow(size);
    for (Lane& lane : lanes_) lane.sides[side].slopes.characters.grow(size);
  }
}

Status Rbsg::restore_characters(std::span<const char32_t> admitted) {
  if (static_cast<int64_t>(admitted.size()) + CharacterTable::kFixed < encoders_[kCentre].values.characters.rows())
    return error(Code::kFailedPrecondition, "characters are restored into a new model, before its words are told");
  STREAMVEC_RETURN_IF_ERROR(characters_.restore(admitted));
  grow_characters();
  return {};
}

std::vector<Rbsg::Named> Rbsg::states() {
  take_told();
  return states_now();
}

std::vector<Rbsg::Named> Rbsg::states_now() {
  come_back();
  std::vector<Named> all;
  for (int side : {kCentre, kContext}) {
    Encoder& encoder = encoders_[side];
    const auto add = [&](EncoderParameters& part, const char* suffix) {
      for (const EncoderParameters::Named& each : part.all())
        all.push_back({std::string(kSideNames[side]) + each.name + suffix, each.values});
    };
    add(encoder.values, "");
    add(encoder.mean, ".adam.mean");
    add(encoder.variance, ".adam.variance");
  }
  all.push_back({"rbsg.steps", &steps_});
  return all;
}

std::vector<Rbsg::SharedTable> Rbsg::shared_tables() {
  const std::unique_lock lock = lock_told();
  std::vector<SharedTable> all;
  for (Encoder& encoder : encoders_)
    for (const EncoderParameters::Named& each : encoder.values.all())
      all.push_back({each.values, shares_characters_ && each.values == &encoder.values.characters});
  return all;
}

Rbsg::BatchStats Rbsg::train_batch(const RbsgBatch& batch, float lr) {
  STREAMVEC_CHECK_EQ(batch.centres.size(), batch.contexts.size());
  BatchStats stats;
  if (batch.pairs() == 0) return stats;
  const bool on_card = options_.cuda && batch.form == RbsgBatch::Negatives::kPool;
  if (turns_ && !on_card) turns_->begin_step();  // nobody waits here with the lock
  const std::unique_lock lock = lock_told();
  if (on_card) return train_on_card(batch, lr);
  come_back();
  stats.pairs = batch.pairs();
  const double flops_before = flops();
  plan_.build(batch, static_cast<float>(options_.negatives), spellings_, team_.size());
  for (int side : {kCentre, kContext}) {
    const auto count = static_cast<int64_t>(plan_.sides[side].words.size());
    vectors_[side].values.reserve_zeroed(count, options_.dim);
    for (RowBuffer& slopes : vectors_[side].slopes) slopes.reserve_zeroed(count, options_.dim);
  }
  team_.run([&](int32_t member) { encode(member); });
  team_.run([&](int32_t member) { climb_objective(member, batch); });
  const double summed = shared_ ? SharedSlopes::kUnit : static_cast<double>(stats.pairs);
  team_.run([&](int32_t member) { climb_encoders(member, static_cast<float>(1 / summed)); });
  team_.run([&](int32_t member) { add_slopes(member); });
  double square = 0;
  for (const Lane& lane : lanes_) {
    stats.loss += lane.loss;
    square += lane.square;
  }
  stats.refused = !std::isfinite(square) || !std::isfinite(stats.loss);
  shared_ ? leave_slopes(lr, stats) : step_all(lr, stats.refused);
  if (turns_) turns_->end_step();
  for (const Lane& lane : lanes_)
    for (const Part& part : lane.sides) {
      stats.nodes += part.trie.nodes() - 1;
      stats.inner += part.trie.inner() - 1;
    }
  stats.flops = flops() - flops_before;
  return stats;
}

double Rbsg::flops() const {
  double sum = 0;
  for (const Lane& lane : lanes_)
    for (const Part& part : lane.sides) sum += part.lstm->flops();
  return sum + (muon_ ? muon_->flops() : 0);
}

void Rbsg::encode(int32_t member) {
  for (int side : {kCentre, kContext}) {
    const RbsgPlan::Side& plan = plan_.sides[side];
    Part& part = lanes_[static_cast<size_t>(member)].sides[side];
    const int32_t begin = plan.cuts[static_cast<size_t>(member)], end = plan.cuts[static_cast<size_t>(member) + 1];
    part.trie.build(std::span(plan.words).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    part.lstm->forward(encoders_[side].values, part.trie, some_rows(vectors_[side].values.view(), begin, end - begin));
  }
}

// Pairs and pool are two pieces of work, on two threads where there are two.
void Rbsg::climb_objective(int32_t member, const RbsgBatch& batch) {
  Lane& lane = lanes_[static_cast<size_t>(member)];
  Vectors &centres = vectors_[kCentre], &outputs = vectors_[kContext];
  const MatrixView<const float> u = centres.values.view(), v = outputs.values.view();
  lane.loss = 0;
  if (member == 0) {
    const MatrixView<float> du = centres.slopes[0].view(), dv = outputs.slopes[0].view();
    lane.loss += lane.objective.climb_pairs(plan_.pairs, true, u, v, du, dv);
    lane.loss += lane.objective.climb_pairs(plan_.apart, false, u, v, du, dv);
  }
  if (member == std::min(1, team_.size() - 1) && batch.form == RbsgBatch::Negatives::kPool)
    lane.loss +=
        lane.objective.climb_pool(plan_.pairs, plan_.pool, u, v, centres.slopes[1].view(), outputs.slopes[1].view());
}

void Rbsg::climb_encoders(int32_t member, float scale) {
  for (int side : {kCentre, kContext}) {
    const std::vector<int32_t>& cuts = plan_.sides[side].cuts;
    Part& part = lanes_[static_cast<size_t>(member)].sides[side];
    const int32_t begin = cuts[static_cast<size_t>(member)], end = cuts[static_cast<size_t>(member) + 1];
    RowBuffer(&slopes)[2] = vectors_[side].slopes;
    for (int32_t i = begin; i < end; ++i)
      for (int32_t d = 0; d < options_.dim; ++d)
        slopes[0].row(i)[d] = scale * (slopes[0].row(i)[d] + slopes[1].row(i)[d]);
    part.lstm->backward(encoders_[side].values, part.trie, some_rows(slopes[0].view(), begin, end - begin),
                        part.slopes);
  }
}

// Calls on_row(side, matrix, row) for this member's share of the rows of all parameters.
template <typename OnRow>
void Rbsg::for_each_row(int32_t member, const OnRow& on_row) {
  for (int side : {kCentre, kContext}) {
    const auto matrices = encoders_[side].values.all();
    for (size_t m = 0; m < matrices.size(); ++m) {
      const int64_t rows = matrices[m].values->rows();
      const int64_t begin = rows * member / team_.size(), end = rows * (member + 1) / team_.size();
      for (int64_t row = begin; row < end; ++row) on_row(side, m, row);
    }
  }
}

// The slopes of all threads into those of the first.
void Rbsg::add_slopes(int32_t member) {
  double square = 0;
  for_each_row(member, [&](int side, size_t m, int64_t row) {
    Matrix& sum = *lanes_[0].sides[side].slopes.all()[m].values;
    const auto cols = static_cast<int32_t>(sum.cols());
    for (size_t other = 1; other < lanes_.size(); ++other) {
      float* slopes = lanes_[other].sides[side].slopes.all()[m].values->row(row);
      add_scaled(slopes, 1, cols, sum.row(row));
      std::memset(slopes, 0, static_cast<size_t>(cols) * sizeof(float));
    }
    square += double{mean_square(sum.row(row), cols)};
  });
  lanes_[static_cast<size_t>(member)].square = square;
}

void Rbsg::step_all(float lr, bool refused) {
  if (!refused) *steps_.row(0) = std::min(*steps_.row(0) + 1, 1e6f);
  team_.run([&](int32_t member) { step(member, lr, refused); });
  if (muon_ && !refused) step_matrices(lr);
}

void Rbsg::leave_slopes(float lr, const BatchStats& stats) {
  if (stats.refused) {
    team_.run([&](int32_t member) { step(member, lr, true); });
    shared_->pairs = 0;
    return;
  }
  shared_->pairs += static_cast<double>(stats.pairs);
  shared_->rate = lr;
}

SharedSlopes& Rbsg::share_slopes(int64_t batch) {
  const std::unique_lock lock = lock_told();
  shared_ = std::make_unique<SharedSlopes>();
  shared_->batch = static_cast<double>(batch);
  for (int side : {kCentre, kContext}) {
    Encoder& encoder = encoders_[side];
    const auto values = encoder.values.all(), means = encoder.mean.all(), variances = encoder.variance.all();
    const auto slopes = lanes_[0].sides[side].slopes.all();
    for (size_t m = 0; m < values.size(); ++m)
      shared_->tables.push_back(
          {values[m].values, slopes[m].values, means[m].values, variances[m].values, muon_ && is_matrix(m)});
  }
  shared_->products = products_in_f32_;
  shared_->steps = &steps_;
  shared_->adam_share = adam_rate(1);
  return *shared_;
}

float Rbsg::adam_rate(float lr) const {
  return options_.muon ? kAdamBesideMuon * lr : lr;
}

// Leaves the slopes zeroed for the next batch, but for those that Muon is to step.
void Rbsg::step(int32_t member, float lr, bool refused) {
  const auto steps = static_cast<int64_t>(*steps_.row(0));
  const float rate = adam_rate(lr);
  for_each_row(member, [&](int side, size_t m, int64_t row) {
    if (muon_ && !refused && is_matrix(m)) return;
    Encoder& encoder = encoders_[side];
    float* slopes = lanes_[0].sides[side].slopes.all()[m].values->row(row);
    const auto cols = static_cast<int32_t>(encoder.values.all()[m].values->cols());
    if (!refused)
      adam_step(slopes, rate, steps, AdamRates{}, cols, encoder.mean.all()[m].values->row(row),
                encoder.variance.all()[m].values->row(row), encoder.values.all()[m].values->row(row));
    std::memset(slopes, 0, static_cast<size_t>(cols) * sizeof(float));
  });
}

void Rbsg::step_matrices(float lr) {
  std::vector<Muon::Part> parts;
  for (int side : {kCentre, kContext})
    for (const size_t m : kMatrices)
      parts.push_back({encoders_[side].values.all()[m].values, encoders_[side].mean.all()[m].values,
                       lanes_[0].sides[side].slopes.all()[m].values});
  muon_->step(parts, lr);
}

Status Rbsg::embed(std::span<const std::string_view> words, Side side, int32_t threads, MatrixView<float> out) {
  STREAMVEC_CHECK_EQ(out.cols, int64_t{options_.dim});
  std::unique_lock lock = lock_told();
  const CharacterTable characters = characters_;
  STREAMVEC_ASSIGN_OR_RETURN(const EncoderParameters encoder, copy_encoder(side));
  lock.unlock();
  return embed_words(characters, encoder, {products_, embeds_in_int8_}, words, threads, out);
}

// Embedding a vocabulary takes seconds; the copies, a few MB, take milliseconds.
Status Rbsg::embed_slots(Side side, MatrixView<float> out) {
  std::unique_lock lock = lock_told();
  STREAMVEC_CHECK(out.rows <= static_cast<int64_t>(spellings_.size()));
  const SpellingsCopy words({spellings_.data(), static_cast<size_t>(out.rows)});
  STREAMVEC_ASSIGN_OR_RETURN(const EncoderParameters encoder, copy_encoder(side));
  lock.unlock();
  embed_spellings(encoder, {products_, embeds_in_int8_}, words.views(), options_.threads, out);
  return {};
}

// Under the lock.
Result<EncoderParameters> Rbsg::copy_encoder(Side side) {
  come_back();
  const std::unique_lock values_lock = lock_values();
  const EncoderParameters& values = encoders_[side].values;
  EncoderParameters copy;
  STREAMVEC_ASSIGN_OR_RETURN(copy.characters, values.characters.copy());
  STREAMVEC_ASSIGN_OR_RETURN(copy.input, values.input.copy());
  STREAMVEC_ASSIGN_OR_RETURN(copy.recurrent, values.recurrent.copy());
  STREAMVEC_ASSIGN_OR_RETURN(copy.bias, values.bias.copy());
  STREAMVEC_ASSIGN_OR_RETURN(copy.output, values.output.copy());
  STREAMVEC_ASSIGN_OR_RETURN(copy.output_bias, values.output_bias.copy());
  return copy;
}

RbsgIndex Rbsg::index() {
  const std::unique_lock lock = lock_told();
  return index_now();
}

RbsgIndex Rbsg::index_now() const {
  RbsgIndex index{shape_of(options_),
                  options_.characters,
                  options_.fold_case,
                  {characters_.admitted().begin(), characters_.admitted().end()}};
  index.shape.characters = characters_.size();
  return index;
}

double Rbsg::steps() const {
  const std::lock_guard lock(mutex_);
  const std::unique_lock values_lock = lock_values();  // who takes turns with batches may be at a step
  return double{*steps_.row(0)};
}

Result<std::vector<Rbsg::Copy>> Rbsg::copy_states() {
  const std::unique_lock lock = lock_told();
  const std::unique_lock values_lock = lock_values();
  std::vector<Copy> copies;
  for (const Named& each : states_now()) {
    STREAMVEC_ASSIGN_OR_RETURN(Matrix copy, each.values->copy());
    copies.push_back({each.name, std::move(copy)});
  }
  return copies;
}

Result<std::shared_ptr<const RbsgVectors>> Rbsg::vectors() {
  std::unique_lock lock = lock_told();
  const RbsgIndex now = index_now();
  STREAMVEC_ASSIGN_OR_RETURN(EncoderParameters copy, copy_encoder(kCentre));
  lock.unlock();
  return RbsgVectors::make(now, std::move(copy));
}

}  // namespace streamvec
