// When the leader is gone: the words of all. Each change of hands was told to all nodes in one order, so that what each
// has heard of is the beginning of the same list, and who has heard the most knows all that anybody has. The new leader
// asks that one for what it lacks, makes the shared vocabulary of it, numbers on beyond all that the one before can
// have told anybody, and tells each what it lacks. Counts are those that were told last, and what each node has counted
// since. What only the one before knew is lost: changes that nobody has heard of, which are none then; counts of words
// outside; and what it has counted itself since counts were told last. What it had counted and told some and not
// others may be in twice, or missing.
#include <algorithm>
#include <utility>

#include "streamvec/cluster/leader.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr int kSavesOfEpoch = 32;  // bits: saves of a later leader have greater numbers than all of those before

}  // namespace

void StreamExchange::change_leader(NodeId self, NodeId leader, Outbox& out) {
  {
    const std::lock_guard lock(mutex_);
    if (!own_cursors_ && !told_cursors_.empty()) own_cursors_ = told_cursors_;
  }
  succession_.reset();
  wanted_after_.reset();
  if (self != leader) reports_.clear();
  const auto lock = parts_.lock_vocabulary();
  for (VocabularyReport& words : untold_.all(parts_.vocabulary, self == leader)) {
    StreamReport again;
    again.words = std::move(words);
    if (parts_.replay != nullptr) again.replay = parts_.replay->share();
    if (self == leader)
      take_report(self, std::move(again));
    else
      put(leader, encode(again), out);
  }
}

void StreamExchange::succeed(std::map<NodeId, uint64_t> heard, uint32_t epoch) {
  succession_ = {std::move(heard), epoch, 0};
  save_ = std::max(save_.load(), int64_t{epoch} << kSavesOfEpoch);
}

// REQUIRES: the vocabulary's lock.
Status StreamExchange::take_place(double now_s, NodeId self, const View& view, Outbox& out) {
  const std::set<NodeId> members = all_of(view);
  const uint64_t own_stamp = parts_.vocabulary.stamp();
  std::pair<uint64_t, NodeId> most{own_stamp, self};
  for (const auto& [node, stamp] : succession_->heard)
    if (members.count(node) > 0 && stamp > most.first) most = {stamp, node};
  if (most.second != self) {
    if (std::exchange(succession_->asked, most.second) == most.second) return {};
    StateWriter after;
    after.put(own_stamp);
    out.emplace_back(most.second, stream_message(StreamKind::kAsk, after.bytes()));
    return {};
  }
  StreamVocabulary::Options options = parts_.vocabulary.options();
  options.follows = false;
  STREAMVEC_RETURN_IF_ERROR(StreamVocabulary::check_memory(options));
  StreamReport own;
  report(now_s, self, self, own, out);
  make_shared();
  nodes_.clear();
  for (const auto& [node, stamp] : succession_->heard) nodes_[node].stamp = stamp;
  nodes_[self].stamp = own_stamp;
  succession_.reset();
  return {};
}

// REQUIRES: the vocabulary's lock.
void StreamExchange::make_shared() {
  shared_.emplace(StreamVocabulary::successor(parts_.vocabulary), parts_.clock_tokens);
}

Status StreamExchange::receive_changes(NodeId from, std::string_view bytes, std::vector<Slot>& restarted) {
  if (!succession_ || from != succession_->asked) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const VocabularyChanges changes, decode_vocabulary_changes(bytes));
  const auto lock = parts_.lock_vocabulary();
  return apply_words(changes, restarted);
}

bool StreamExchange::has_words() const {
  const auto lock = parts_.lock_vocabulary();
  return shared_.has_value();
}

}  // namespace streamvec
