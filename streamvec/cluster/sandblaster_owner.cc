#include "streamvec/cluster/sandblaster_owner.h"

#include <algorithm>
#include <map>

#include "streamvec/sync/view.h"

namespace streamvec {
namespace {

constexpr int64_t kCopiesAtOnce = 4;  // messages under way

}  // namespace

NodeId second_owner_of(RowKey row, std::span<const NodeId> owners) {
  const NodeId first = owner_of(row, owners);
  std::vector<NodeId> others;
  for (const NodeId owner : owners)
    if (owner != first) others.push_back(owner);
  return owner_of(row, others);
}

SandblasterOwner::SandblasterOwner(const Options& options, SandblasterPost post)
    : options_(options),
      post_(std::move(post)),
      shard_(options.dim, options.scale, "more nodes, a smaller --lbfgs-history, or a smaller --dim") {}

Result<std::unique_ptr<SandblasterOwner>> SandblasterOwner::make(const Options& options, SandblasterPost post) {
  std::unique_ptr<SandblasterOwner> owner(new SandblasterOwner(options, std::move(post)));
  STREAMVEC_ASSIGN_OR_RETURN(owner->copies_, Shard::make(options.row_end, options.dim));
  return owner;
}

Status SandblasterOwner::receive(NodeId from, const SandblasterMessage& message) {
  switch (message.kind) {
    case SandblasterKind::kView:
      return take_view(message);
    case SandblasterKind::kApply:
      return apply(message);
    case SandblasterKind::kBegin:
      return begin(message);
    case SandblasterKind::kFetch:
      return give_rows(from, message);
    case SandblasterKind::kGradient:
      return take_gradient(from, message);
    case SandblasterKind::kKeep:
      return keep(message);
    case SandblasterKind::kCopies:
      return take_copies(from, message);
    case SandblasterKind::kCopied:
      if (message.number == keeping_) --copies_under_way_, send_copies();
      return {};
    default:
      return {};
  }
}

// Rows that this node has stay as they are; new ones come from the second copy, or have never changed.
Status SandblasterOwner::take_view(const SandblasterMessage& view) {
  epoch_ = view.epoch;
  owners_.assign(view.rows.begin(), view.rows.end());
  to_copy_.clear();
  copies_under_way_ = 0;
  keeping_ = 0;
  evaluation_ = 0;
  std::vector<RowKey> rows;
  for (RowKey row = 0; row < options_.row_end; ++row)
    if (owner_of(row, owners_) == options_.self) rows.push_back(row);
  const bool have_copies = view.number != 0;
  const Status taken = shard_.take(rows, [&](RowKey row, std::span<float> values) -> Status {
    const int64_t place = copies_.find(row);
    if (place < 0 && have_copies) return error(Code::kDataLoss, "both nodes that had row ", row, " are gone");
    if (place < 0)
      options_.initial(row, values);
    else
      std::copy_n(copies_.row(place), values.size(), values.begin());
    return {};
  });
  if (taken.ok())
    for (const RowKey row : rows) copies_.remove(row);
  post_(options_.coordinator,
        {.kind = SandblasterKind::kReady, .epoch = epoch_, .text = taken.ok() ? "" : taken.message()});
  return {};
}

Status SandblasterOwner::apply(const SandblasterMessage& question) {
  SandblasterMessage answer{.kind = SandblasterKind::kTold, .epoch = epoch_, .number = question.number};
  STREAMVEC_RETURN_IF_ERROR(shard_.apply(question.ops, answer.doubles));
  post_(options_.coordinator, answer);
  return {};
}

Status SandblasterOwner::begin(const SandblasterMessage& question) {
  evaluation_ = question.number;
  taken_.clear();
  STREAMVEC_RETURN_IF_ERROR(shard_.clear(kTrialGradient));
  post_(options_.coordinator, {.kind = SandblasterKind::kTold, .epoch = epoch_, .number = question.number});
  return {};
}

Status SandblasterOwner::give_rows(NodeId to, const SandblasterMessage& question) {
  SandblasterMessage answer{.kind = SandblasterKind::kRows, .epoch = epoch_, .number = question.number};
  STREAMVEC_RETURN_IF_ERROR(shard_.read(question.vector, question.rows, answer.values));
  post_(to, answer);
  return {};
}

// What a second node brings of a portion is the same, cut at the same rows, and is in already.
Status SandblasterOwner::take_gradient(NodeId from, const SandblasterMessage& part) {
  if (part.number == evaluation_ && !part.rows.empty() && taken_.count({part.portion, part.rows.front()}) == 0) {
    STREAMVEC_RETURN_IF_ERROR(shard_.add(kTrialGradient, part.rows, part.values));
    taken_.insert({part.portion, part.rows.front()});
  }
  post_(from, {.kind = SandblasterKind::kTaken, .epoch = epoch_, .number = part.number, .portion = part.portion});
  return {};
}

Status SandblasterOwner::keep(const SandblasterMessage& question) {
  keeping_ = question.number;
  to_copy_.clear();
  copies_under_way_ = 0;
  const size_t at_once = rows_of_message(options_.dim);
  std::map<NodeId, std::vector<RowKey>> by_owner;
  for (const RowKey row : shard_.rows()) {
    if (owners_.size() < 2) break;
    const NodeId second = second_owner_of(row, owners_);
    std::vector<RowKey>& rows = by_owner[second];
    rows.push_back(row);
    if (rows.size() == at_once) to_copy_.emplace_back(second, std::exchange(rows, {}));
  }
  for (auto& [second, rows] : by_owner)
    if (!rows.empty()) to_copy_.emplace_back(second, std::move(rows));
  send_copies();
  return {};
}

void SandblasterOwner::send_copies() {
  while (copies_under_way_ < kCopiesAtOnce && !to_copy_.empty()) {
    SandblasterMessage copies{.kind = SandblasterKind::kCopies, .epoch = epoch_, .number = keeping_};
    copies.rows = std::move(to_copy_.front().second);
    const NodeId second = to_copy_.front().first;
    to_copy_.pop_front();
    STREAMVEC_CHECK(shard_.read(kPoint, copies.rows, copies.values).ok());
    ++copies_under_way_;
    post_(second, copies);
  }
  if (copies_under_way_ == 0)
    post_(options_.coordinator, {.kind = SandblasterKind::kKept, .epoch = epoch_, .number = keeping_});
}

Status SandblasterOwner::take_copies(NodeId from, const SandblasterMessage& copies) {
  const auto dim = static_cast<size_t>(options_.dim);
  if (copies.values.size() != copies.rows.size() * dim)
    return error(Code::kInvalidArgument, copies.values.size(), " values for ", copies.rows.size(), " rows of ", dim);
  for (size_t i = 0; i < copies.rows.size(); ++i) {
    if (copies.rows[i] >= options_.row_end)
      return error(Code::kOutOfRange, "node ", from, " names row ", copies.rows[i], " of ", options_.row_end);
    std::copy_n(copies.values.data() + i * dim, dim, copies_.row(copies_.add(copies.rows[i])));
  }
  post_(from, {.kind = SandblasterKind::kCopied, .epoch = epoch_, .number = copies.number});
  return {};
}

}  // namespace streamvec
