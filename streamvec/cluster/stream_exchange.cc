#include "streamvec/cluster/stream_exchange.h"

#include <algorithm>

#include "streamvec/cluster/leader.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr std::chrono::seconds kSlotsWait{1};  // for words of one document; without an answer they have no slots

}  // namespace

StreamExchange::StreamExchange(Parts parts, int64_t slots_max, std::optional<SharedVocabulary> shared)
    : parts_(std::move(parts)),
      generations_(slots_max),
      first_stamp_(parts_.vocabulary.stamp()),
      met_(parts_.hybrid),
      shared_(std::move(shared)) {
  for (Slot slot = 0; slot < parts_.vocabulary.size(); ++slot) generations_.begin(slot, parts_.vocabulary.born(slot));
  generations_.go_to(parts_.vocabulary.stamp());
}

Status StreamExchange::step(double now_s, NodeId self, NodeId leader, const View& view, bool last, Outbox& out,
                            std::vector<Slot>& restarted) {
  self_ = self;
  stepped_ = true;
  if (!parts_come_.empty()) parts_come_.forget_others(all_of(view));
  relay(view, out);
  StreamReport next;
  {
    const std::lock_guard lock(mutex_);
    if (own_cursors_) {
      next.save = told_save_;
      next.cursors = told_cursors_ = *std::exchange(own_cursors_, std::nullopt);
    }
  }
  const auto lock = parts_.lock_vocabulary();
  const bool last_due = last && !std::exchange(last_told_, last);
  const bool met_due = self != leader && met_.is_due(now_s);
  if (trips_.is_due(parts_.vocabulary, now_s) || met_due || last_due || !next.cursors.empty())
    report(now_s, self, leader, next, out);
  if (const auto after = std::exchange(wanted_after_, std::nullopt))
    put(leader, stream_message(StreamKind::kChanges, encode(parts_.vocabulary.changes_since(*after))), out);
  if (succession_ && view.epoch > succession_->epoch) STREAMVEC_RETURN_IF_ERROR(take_place(now_s, self, view, out));
  return shared_ ? lead(self, view, out, restarted) : Status();
}

void StreamExchange::put(NodeId to, std::string message, Outbox& out) const {
  if (static_cast<int64_t>(message.size()) <= parts_.message_bytes_max) {
    out.emplace_back(to, std::move(message));
    return;
  }
  for (const std::string& part : in_parts(message, parts_.message_bytes_max))
    out.emplace_back(to, stream_message(StreamKind::kPart, part));
}

// REQUIRES: the vocabulary's lock.
void StreamExchange::report(double now_s, NodeId self, NodeId leader, StreamReport& report, Outbox& out) {
  report.words = parts_.vocabulary.take_report();
  if (self != leader) report.words.met = met_.take(now_s, parts_.vocabulary.size());
  if (parts_.replay != nullptr) report.replay = parts_.replay->share();
  trips_.reported(report.words, now_s);
  if (self == leader) {
    // Before it has the place of one that is gone: what is in the follower will be in what is made of it.
    if (!shared_) UntoldCounts::leave_out_own(report.words);
    return take_report(self, std::move(report));
  }
  put(leader, encode(report), out);
  untold_.reported(std::move(report.words));
}

// Chunks from nodes that only read, and how many of them have come into replay.
void StreamExchange::relay(const View& view, Outbox& out) {
  std::set<NodeId> trains, reads;
  for (const NodeId node : view.workers) (parts_.readers.count(node) > 0 ? reads : trains).insert(node);
  if (parts_.sender != nullptr) {
    parts_.sender->set_workers(trains);
    for (auto& [node, chunk] : parts_.sender->take_out())
      out.emplace_back(node, stream_message(StreamKind::kChunk, chunk));
  }
  if (parts_.receiver == nullptr) return;
  parts_.receiver->set_readers(reads);
  for (const auto& [node, taken] : parts_.receiver->take_taken()) {
    StateWriter count;
    count.put(taken);
    out.emplace_back(node, stream_message(StreamKind::kTaken, count.bytes()));
  }
}

void StreamExchange::take_report(NodeId from, StreamReport report) {
  if (!report.cursors.empty()) {
    const std::lock_guard lock(mutex_);
    cursors_[from] = {report.save, std::move(report.cursors)};
    cursors_changed_.notify_all();
  }
  replays_.receive(from, report.replay);
  reports_.emplace_back(from, std::move(report));
}

// Under the vocabulary's lock, so that the shared vocabulary and this node's own are never seen apart.
Status StreamExchange::lead(NodeId self, const View& view, Outbox& out, std::vector<Slot>& restarted) {
  {
    const std::lock_guard lock(mutex_);
    others_ = {view.workers.begin(), view.workers.end()};
    others_.erase(self);
    led_ = true;
  }
  const std::set<NodeId> members = all_of(view);
  std::erase_if(nodes_, [&](const auto& node) {
    if (members.count(node.first) == 0) replays_.forget(node.first);
    return members.count(node.first) == 0;
  });
  if (!held_)
    for (const auto& [from, report] : std::exchange(reports_, {})) {
      if (shared_->receive(from, report.words)) met_.add(report.words, shared_->vocabulary());
      nodes_.try_emplace(from, Known{.stamp = first_stamp_}).first->second.answered = report.words.number;
    }
  const bool changed = !held_ && shared_->has_changes();
  const VocabularyChanges changes = changed ? shared_->take_changes() : shared_->no_changes();
  for (const NodeId node : members) {
    Known& known = nodes_.try_emplace(node, Known{.stamp = first_stamp_}).first->second;
    if (!changed && known.told == known.answered && known.save == save_ && known.saved == saved_ &&
        known.stop == stop_ && known.divide == divide_ && known.divided == divided_ && known.stamp == changes.stamp)
      continue;
    StreamNews news = news_for(node, changes);
    known = {news.answered, news.answered, news.save,    news.saved,
             news.stop,     news.divide,   news.divided, news.words.stamp};
    if (node == self) {
      STREAMVEC_RETURN_IF_ERROR(apply(news, restarted));
      continue;
    }
    if (!news.words.counts.empty()) news.met = met_.all(shared_->vocabulary().size(), changes);
    put(node, encode(news), out);
  }
  return {};
}

void StreamExchange::welcome(NodeId node, Outbox& out) const {
  const auto lock = parts_.lock_vocabulary();
  StreamNews news;
  news.words = shared_->changes_since(0);
  news.met = met_.all(shared_->vocabulary().size(), {});
  put(node, encode(news), out);
}

StreamNews StreamExchange::news_for(NodeId node, const VocabularyChanges& changes) const {
  const Known& known = nodes_.at(node);
  StreamNews news;
  news.answered = known.answered;
  news.reference = replays_.reference(node).value_or(0);
  news.save = save_;  // before `divide`, which is set before it
  news.divide = divide_;
  news.saved = saved_;
  news.stop = stop_;
  {
    const std::lock_guard lock(mutex_);
    news.divided = divided_;
    if (known.divided != news.divided) news.division = division_;
  }
  news.words = known.stamp == changes.after ? changes : shared_->changes_since(known.stamp);
  return news;
}

Status StreamExchange::receive(NodeId from, NodeId leader, std::string_view bytes, std::vector<Slot>& restarted) {
  const std::optional<std::string_view> part = body_of(bytes, StreamKind::kPart);
  if (!part) return receive_whole(from, leader, bytes, restarted);
  STREAMVEC_ASSIGN_OR_RETURN(const std::optional<std::string> whole, parts_come_.take(from, *part));
  return whole ? receive_whole(from, leader, *whole, restarted) : Status();
}

Status StreamExchange::receive_whole(NodeId from, NodeId leader, std::string_view bytes, std::vector<Slot>& restarted) {
  if (const auto chunk = body_of(bytes, StreamKind::kChunk); chunk && parts_.receiver != nullptr)
    return parts_.receiver->receive(from, *chunk);
  if (const auto taken = body_of(bytes, StreamKind::kTaken); taken && parts_.sender != nullptr) {
    parts_.sender->taken(from, StateReader(*taken).get<int64_t>());
    return {};
  }
  if (body_of(bytes, StreamKind::kReport)) {
    STREAMVEC_ASSIGN_OR_RETURN(StreamReport report, decode_stream_report(bytes));
    take_report(from, std::move(report));
    return {};
  }
  if (const auto after = body_of(bytes, StreamKind::kAsk)) {
    if (from == leader) wanted_after_ = StateReader(*after).get<uint64_t>();
    return {};
  }
  if (const auto changes = body_of(bytes, StreamKind::kChanges)) return receive_changes(from, *changes, restarted);
  STREAMVEC_ASSIGN_OR_RETURN(const StreamNews news, decode_stream_news(bytes));
  if (from != leader) return {};
  receive_division(news);
  save_ = news.save;
  saved_ = news.saved;
  if (news.stop) {
    stop_ = true;
    // Nobody takes chunks any more, and whoever would notice may be waiting for room for some.
    if (parts_.sender != nullptr) parts_.sender->close();
  }
  const auto lock = parts_.lock_vocabulary();
  return apply(news, restarted);
}

// REQUIRES: the vocabulary's lock.
Status StreamExchange::apply(const StreamNews& news, std::vector<Slot>& restarted) {
  const uint64_t known = parts_.vocabulary.stamp();
  STREAMVEC_RETURN_IF_ERROR(apply_words(news.words, restarted));
  trips_.answered(news.answered);
  untold_.answered(news.answered, known, !news.words.counts.empty(), parts_.vocabulary);
  const bool counts_taken = news.words.stamp >= known && std::ssize(news.words.counts) == parts_.vocabulary.size();
  if (counts_taken && !news.words.counts.empty()) {
    parts_.vocabulary.add(untold_.unanswered(&VocabularyReport::slots, parts_.vocabulary));
    met_.told(news.met, untold_.unanswered(&VocabularyReport::met, parts_.vocabulary));
  }
  if (parts_.replay != nullptr)
    parts_.replay->set_reference(news.reference > 0 ? std::optional(news.reference) : std::nullopt);
  words_changed_.notify_all();
  return {};
}

// REQUIRES: the same.
Status StreamExchange::apply_words(const VocabularyChanges& words, std::vector<Slot>& restarted) {
  STREAMVEC_RETURN_IF_ERROR(parts_.vocabulary.follow(words, admitted_));
  for (const Slot slot : admitted_) {
    generations_.begin(slot, parts_.vocabulary.born(slot));
    untold_.begin(slot);
    met_.begin(slot);
  }
  generations_.go_to(parts_.vocabulary.stamp());
  restarted.insert(restarted.end(), admitted_.begin(), admitted_.end());
  if (!admitted_.empty()) parts_.restarted(admitted_);
  if (words.counts.empty()) return {};
  counted_ = true;
  if (parts_.counted) parts_.counted();
  return {};
}

void StreamExchange::close() {
  {
    const std::lock_guard lock(mutex_);
    answers_over_ = true;
    cursors_changed_.notify_all();
  }
  const auto lock = parts_.lock_vocabulary();
  closed_ = true;
  words_changed_.notify_all();
  if (parts_.sender != nullptr) parts_.sender->close();
}

void StreamExchange::await_words() {
  auto lock = parts_.lock_vocabulary();
  words_changed_.wait(lock, [&] { return closed_ || trips_.text_may_come(parts_.vocabulary); });
}

void StreamExchange::await_slots() {
  auto lock = parts_.lock_vocabulary();
  const int64_t number = trips_.hurry(parts_.vocabulary);
  words_changed_.wait_for(lock, kSlotsWait, [&] { return closed_ || trips_.has_answered(number); });
}

void StreamExchange::gather_cursors(Deadline deadline) {
  const int64_t wanted = ++save_;
  std::unique_lock lock(mutex_);
  cursors_changed_.wait_until(lock, deadline.when(), [&] {
    return answers_over_ || std::all_of(others_.begin(), others_.end(), [&](NodeId node) {
             const auto told = cursors_.find(node);
             return told != cursors_.end() && told->second.first == wanted;
           });
  });
}

std::map<NodeId, std::string> StreamExchange::cursors() const {
  const std::lock_guard lock(mutex_);
  std::map<NodeId, std::string> told;
  for (const auto& [node, cursors] : cursors_) told[node] = cursors.second;
  return told;
}

void StreamExchange::hold() {
  const auto lock = parts_.lock_vocabulary();
  held_ = true;
  if (!shared_) make_shared();
  std::vector<Slot> none;
  STREAMVEC_CHECK(parts_.vocabulary.follow(shared_->changes_since(parts_.vocabulary.stamp()), none).ok());
}

void StreamExchange::go_on() {
  const auto lock = parts_.lock_vocabulary();
  held_ = false;
}

std::string StreamExchange::save_vocabulary() const {
  const auto lock = parts_.lock_vocabulary();
  return shared_->vocabulary().save();
}

void StreamExchange::tell_cursors(std::string cursors, int64_t save) {
  const std::lock_guard lock(mutex_);
  told_save_ = save;
  own_cursors_ = std::move(cursors);
}

bool StreamExchange::take_safe() {
  const int64_t told = told_save_;
  if (told == own_safe_ || saved_ < told) return false;
  own_safe_ = told;
  return true;
}

}  // namespace streamvec
