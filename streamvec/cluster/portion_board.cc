#include "streamvec/cluster/portion_board.h"

namespace streamvec {

PortionBoard::PortionBoard(int64_t portions) : portions_(static_cast<size_t>(portions)), left_(portions) {
  for (int64_t i = 0; i < portions; ++i) waiting_.push_back(i);
}

std::optional<int64_t> PortionBoard::next(NodeId node) {
  const auto hand_out = [&](int64_t portion) {
    portions_[static_cast<size_t>(portion)].nodes.insert(node);
    ++in_work_[node];
    return portion;
  };
  if (!waiting_.empty()) {
    const int64_t portion = waiting_.front();
    waiting_.pop_front();
    handed_out_.push_back(portion);
    return hand_out(portion);
  }
  std::erase_if(handed_out_, [&](int64_t portion) { return portions_[static_cast<size_t>(portion)].finished; });
  for (const int64_t portion : handed_out_) {
    const Portion& each = portions_[static_cast<size_t>(portion)];
    if (each.nodes.size() != 1 || each.nodes.count(node) > 0) continue;
    ++copies_;
    return hand_out(portion);
  }
  return std::nullopt;
}

bool PortionBoard::finish(NodeId node, int64_t portion) {
  Portion& each = portions_[static_cast<size_t>(portion)];
  if (each.nodes.erase(node) > 0) --in_work_[node];
  if (each.finished) return false;
  each.finished = true;
  --left_;
  return true;
}

void PortionBoard::leave(NodeId node) {
  for (size_t i = 0; i < portions_.size(); ++i) {
    if (portions_[i].nodes.erase(node) == 0 || portions_[i].finished || !portions_[i].nodes.empty()) continue;
    std::erase(handed_out_, static_cast<int64_t>(i));
    waiting_.push_front(static_cast<int64_t>(i));
  }
  in_work_.erase(node);
}

int64_t PortionBoard::in_work(NodeId node) const {
  const auto found = in_work_.find(node);
  return found == in_work_.end() ? 0 : found->second;
}

}  // namespace streamvec
