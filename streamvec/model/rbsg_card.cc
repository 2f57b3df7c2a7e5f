// Rbsg's batches on the card: plans and tries are made here, everything else there.
#include <algorithm>
#include <utility>

#include "streamvec/cuda/device.h"
#include "streamvec/model/rbsg.h"

namespace streamvec {
namespace {

cuda::EncoderViews views_of(EncoderParameters& encoder) {
  cuda::EncoderViews views;
  const auto parts = encoder.all();
  for (size_t i = 0; i < views.size(); ++i) views[i] = parts[i].values->view();
  return views;
}

cuda::RbsgShape shape_of(const RbsgOptions& options, int32_t characters) {
  cuda::RbsgShape shape;
  shape.characters = characters;
  shape.character_dim = options.character_dim;
  shape.hidden = options.hidden;
  shape.dim = options.dim;
  shape.gru = options.cell == RecurrentCell::kGru;
  shape.bf16 = options.cuda_bf16;
  shape.muon = options.muon;
  return shape;
}

cuda::RbsgSide side_of(const CharTrie& trie) {
  cuda::RbsgSide side;
  side.parents = trie.parents();
  side.characters = trie.characters();
  side.alphabet.assign(trie.alphabet().begin(), trie.alphabet().end());
  side.word_nodes = trie.word_nodes();
  side.inner = trie.inner();
  for (int32_t length = 0; length < trie.levels(); ++length) {
    const CharTrie::Level& level = trie.level(length);
    side.levels.push_back({level.inner_begin, level.inner_end, level.leaf_begin, level.leaf_end});
  }
  return side;
}

}  // namespace

Status Rbsg::find_card() {
  STREAMVEC_ASSIGN_OR_RETURN(const cuda::Device device, cuda::find_device());
  card_.name = device.name;
  // Whether it can be used at all is known before the first batch.
  return cuda::make_rbsg_trainer(shape_of(options_, options_.characters.size_max)).status();
}

std::string Rbsg::kernel_name() const {
  if (options_.cuda) return "cuda " + card_.name + (options_.cuda_bf16 ? " bf16" : " tf32");
  return products_->name() + (embeds_in_int8_ ? "+int8" : "");
}

Status Rbsg::go_to_card() {
  if (card_.newest) return {};
  const auto characters = static_cast<int32_t>(encoders_[kCentre].values.characters.rows());
  STREAMVEC_ASSIGN_OR_RETURN(card_.trainer, cuda::make_rbsg_trainer(shape_of(options_, characters)));
  STREAMVEC_RETURN_IF_ERROR(card_.trainer->put({views_of(encoders_[0].values), views_of(encoders_[1].values)},
                                               {views_of(encoders_[0].mean), views_of(encoders_[1].mean)},
                                               {views_of(encoders_[0].variance), views_of(encoders_[1].variance)},
                                               static_cast<int64_t>(*steps_.row(0))));
  card_.newest = true;
  return {};
}

// Under the lock, as all of these. An error is told by settle(); values then are those of before.
void Rbsg::come_back() const {
  if (!card_.newest) return;
  const Status fetched = card_.trainer->get({views_of(encoders_[0].values), views_of(encoders_[1].values)},
                                            {views_of(encoders_[0].mean), views_of(encoders_[1].mean)},
                                            {views_of(encoders_[0].variance), views_of(encoders_[1].variance)});
  if (card_.status.ok()) card_.status = fetched;
  if (const Result<cuda::RbsgTotals> totals = card_.trainer->totals(true); totals.ok()) card_.untold = *totals;
  card_.newest = false;
}

Rbsg::BatchStats Rbsg::train_on_card(const RbsgBatch& batch, float lr) {
  BatchStats nothing;
  if (card_.status.ok()) card_.status = go_to_card();
  if (!card_.status.ok()) return nothing;
  plan_.build(batch, static_cast<float>(options_.negatives), spellings_, 1);
  for (int side : {kCentre, kContext}) lanes_[0].sides[side].trie.build(plan_.sides[side].words);
  cuda::RbsgWork work;
  for (int side : {kCentre, kContext}) work.sides[side] = side_of(lanes_[0].sides[side].trie);
  for (const VectorPair& pair : plan_.pairs) work.pairs.push_back({pair.centre, pair.output});
  work.pool = plan_.pool.outputs;
  work.pool_weights = plan_.pool.weights;
  work.lr = lr;
  work.adam_lr = adam_rate(lr);
  card_.status = card_.trainer->train(work);
  *steps_.row(0) = std::min(*steps_.row(0) + 1, 1e6f);
  const Result<BatchStats> done = card_totals(batch.told_at_once);
  return done.ok() ? *done : nothing;
}

Result<Rbsg::BatchStats> Rbsg::card_totals(bool all) {
  BatchStats stats;
  STREAMVEC_RETURN_IF_ERROR(card_.status);
  if (card_.trainer == nullptr) return stats;
  Result<cuda::RbsgTotals> totals = card_.trainer->totals(all);
  card_.status = totals.status();
  if (!totals.ok()) return totals.status();
  const cuda::RbsgTotals before = std::exchange(card_.untold, {});
  stats.pairs = before.pairs + totals->pairs;
  stats.loss = before.loss + totals->loss;
  stats.refused = before.batches_refused + totals->batches_refused > 0;
  return stats;
}

bool Rbsg::failed() const {
  const std::lock_guard lock(mutex_);
  return !card_.status.ok();
}

Result<Rbsg::BatchStats> Rbsg::settle() {
  const std::lock_guard lock(mutex_);
  return card_totals(true);
}

}  // namespace streamvec
