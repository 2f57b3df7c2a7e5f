#include "streamvec/cluster/stream_exchange.h"

#include <algorithm>
#include <cmath>

#include "streamvec/cluster/leader.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr char kStreamMagic = 's';
constexpr std::chrono::seconds kSlotsWait{1};  // for words of one document; without an answer they have no slots
constexpr char kReport = 'r', kNews = 'n', kChunk = 'k', kTaken = 't';

Status unreadable_stream() {
  return error(Code::kInvalidArgument,
               "a message about a stream that nobody can read; the sender runs another version");
}

void put_block(std::string_view block, StateWriter& out) {
  out.put(static_cast<uint64_t>(block.size()));
  out.put_all(std::span<const char>(block));
}

std::string get_block(StateReader& in) {
  std::string block(static_cast<size_t>(in.get_count(1)), '\0');
  in.get_all(std::span<char>(block));
  return block;
}

// What follows the first two bytes; nullopt when they are others.
std::optional<std::string_view> body_of(std::string_view bytes, char kind) {
  if (bytes.size() < 2 || bytes[0] != kStreamMagic || bytes[1] != kind) return std::nullopt;
  return bytes.substr(2);
}

}  // namespace

bool is_of_stream(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == kStreamMagic;
}

std::string encode(const StreamReport& report) {
  StateWriter out;
  out.put(report.replay.log2_sum);
  out.put(report.replay.least);
  out.put(report.replay.sampled);
  out.put(report.save);
  put_block(report.cursors, out);
  return std::string{kStreamMagic, kReport} + out.bytes() + encode(report.words);
}

Result<StreamReport> decode_stream_report(std::string_view bytes) {
  const std::optional<std::string_view> body = body_of(bytes, kReport);
  if (!body) return unreadable_stream();
  StateReader in(*body);
  StreamReport report;
  report.replay.log2_sum = in.get<double>();
  report.replay.least = in.get<float>();
  report.replay.sampled = in.get<int64_t>();
  report.save = in.get<int64_t>();
  report.cursors = get_block(in);
  if (!in.ok() || std::isnan(report.replay.log2_sum) || !(report.replay.least >= 0)) return unreadable_stream();
  STREAMVEC_ASSIGN_OR_RETURN(report.words, decode_vocabulary_report(body->substr(in.offset())));
  return report;
}

std::string encode(const StreamNews& news) {
  StateWriter out;
  out.put(news.answered);
  out.put(news.reference);
  out.put(news.save);
  out.put(news.saved);
  out.put(static_cast<uint8_t>(news.stop));
  return std::string{kStreamMagic, kNews} + out.bytes() + encode(news.words);
}

Result<StreamNews> decode_stream_news(std::string_view bytes) {
  const std::optional<std::string_view> body = body_of(bytes, kNews);
  if (!body) return unreadable_stream();
  StateReader in(*body);
  StreamNews news;
  news.answered = in.get<int64_t>();
  news.reference = in.get<float>();
  news.save = in.get<int64_t>();
  news.saved = in.get<int64_t>();
  news.stop = in.get<uint8_t>() != 0;
  if (!in.ok() || !(news.reference >= 0) || !std::isfinite(news.reference)) return unreadable_stream();
  STREAMVEC_ASSIGN_OR_RETURN(news.words, decode_vocabulary_changes(body->substr(in.offset())));
  return news;
}

StreamExchange::StreamExchange(Parts parts, int64_t slots_max, std::optional<SharedVocabulary> shared)
    : parts_(std::move(parts)), generations_(slots_max), shared_(std::move(shared)) {
  for (Slot slot = 0; slot < parts_.vocabulary.size(); ++slot) generations_.begin(slot, parts_.vocabulary.born(slot));
  generations_.go_to(parts_.vocabulary.stamp());
}

Status StreamExchange::step(double now_s, NodeId self, NodeId leader, const View& view, bool last, Outbox& out,
                            std::vector<Slot>& restarted) {
  relay(view, out);
  StreamReport report;
  {
    const std::lock_guard lock(mutex_);
    if (own_cursors_) {
      report.save = told_save_;
      report.cursors = *std::exchange(own_cursors_, std::nullopt);
    }
  }
  const auto lock = parts_.lock_vocabulary();
  const bool last_due = last && !std::exchange(last_told_, last);
  if (trips_.is_due(parts_.vocabulary, now_s) || last_due || !report.cursors.empty()) {
    report.words = parts_.vocabulary.take_report();
    if (parts_.replay != nullptr) report.replay = parts_.replay->share();
    trips_.reported(report.words, now_s);
    if (self == leader)
      take_report(self, std::move(report));
    else
      out.emplace_back(leader, encode(report));
  }
  return shared_ ? lead(self, view, out, restarted) : Status();
}

// Chunks from nodes that only read, and how many of them have come into replay.
void StreamExchange::relay(const View& view, Outbox& out) {
  std::set<NodeId> trains, reads;
  for (const NodeId node : view.workers) (parts_.readers.count(node) > 0 ? reads : trains).insert(node);
  if (parts_.sender != nullptr) {
    parts_.sender->set_workers(trains);
    for (auto& [node, chunk] : parts_.sender->take_out())
      out.emplace_back(node, std::string{kStreamMagic, kChunk} + chunk);
  }
  if (parts_.receiver == nullptr) return;
  parts_.receiver->set_readers(reads);
  for (const auto& [node, taken] : parts_.receiver->take_taken()) {
    StateWriter count;
    count.put(taken);
    out.emplace_back(node, std::string{kStreamMagic, kTaken} + count.bytes());
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
  }
  const std::set<NodeId> members = all_of(view);
  std::erase_if(nodes_, [&](const auto& node) {
    if (members.count(node.first) == 0) replays_.forget(node.first);
    return members.count(node.first) == 0;
  });
  if (!held_)
    for (const auto& [from, report] : std::exchange(reports_, {})) {
      shared_->receive(from, report.words);
      nodes_[from].answered = report.words.number;
    }
  const bool changed = !held_ && shared_->has_changes();
  VocabularyChanges changes;
  if (changed)
    changes = shared_->take_changes();
  else
    changes.after = changes.stamp = generations_.stamp();
  for (const NodeId node : members) {
    Known& known = nodes_[node];
    const StreamNews news = news_for(node, changes);
    if (!changed && known.told == news.answered && known.save == news.save && known.saved == news.saved &&
        known.stop == news.stop)
      continue;
    known = {news.answered, news.answered, news.save, news.saved, news.stop};
    if (node != self)
      out.emplace_back(node, encode(news));
    else
      STREAMVEC_RETURN_IF_ERROR(apply(news, restarted));
  }
  return {};
}

StreamNews StreamExchange::news_for(NodeId node, const VocabularyChanges& changes) const {
  StreamNews news;
  news.answered = nodes_.at(node).answered;
  news.reference = replays_.reference(node).value_or(0);
  news.save = save_;
  news.saved = saved_;
  news.stop = stop_;
  news.words = changes;
  return news;
}

Status StreamExchange::receive(NodeId from, std::string_view bytes, std::vector<Slot>& restarted) {
  if (const auto chunk = body_of(bytes, kChunk); chunk && parts_.receiver != nullptr)
    return parts_.receiver->receive(from, *chunk);
  if (const auto taken = body_of(bytes, kTaken); taken && parts_.sender != nullptr) {
    parts_.sender->taken(from, StateReader(*taken).get<int64_t>());
    return {};
  }
  if (shared_) {
    STREAMVEC_ASSIGN_OR_RETURN(StreamReport report, decode_stream_report(bytes));
    take_report(from, std::move(report));
    return {};
  }
  STREAMVEC_ASSIGN_OR_RETURN(const StreamNews news, decode_stream_news(bytes));
  save_ = news.save;
  saved_ = news.saved;
  if (news.stop) stop_ = true;
  const auto lock = parts_.lock_vocabulary();
  return apply(news, restarted);
}

// REQUIRES: the vocabulary's lock.
Status StreamExchange::apply(const StreamNews& news, std::vector<Slot>& restarted) {
  STREAMVEC_RETURN_IF_ERROR(parts_.vocabulary.follow(news.words, admitted_));
  for (const Slot slot : admitted_) generations_.begin(slot, parts_.vocabulary.born(slot));
  generations_.go_to(parts_.vocabulary.stamp());
  restarted.insert(restarted.end(), admitted_.begin(), admitted_.end());
  if (!admitted_.empty()) parts_.restarted(admitted_);
  if (!news.words.counts.empty()) {
    counted_ = true;
    if (parts_.counted) parts_.counted();
  }
  trips_.answered(news.answered);
  if (parts_.replay != nullptr)
    parts_.replay->set_reference(news.reference > 0 ? std::optional(news.reference) : std::nullopt);
  words_changed_.notify_all();
  return {};
}

void StreamExchange::close() {
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
    return std::all_of(others_.begin(), others_.end(), [&](NodeId node) {
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
  std::vector<Slot> none;
  STREAMVEC_CHECK(parts_.vocabulary.follow(shared_->counts_now(), none).ok());
}

void StreamExchange::go_on() {
  const auto lock = parts_.lock_vocabulary();
  held_ = false;
}

std::string StreamExchange::save_vocabulary() const {
  const auto lock = parts_.lock_vocabulary();
  return shared_->vocabulary().save();
}

void StreamExchange::tell_cursors(std::string cursors) {
  const std::lock_guard lock(mutex_);
  told_save_ = save_.load();
  own_cursors_ = std::move(cursors);
}

bool StreamExchange::take_safe() {
  const int64_t told = told_save_;
  if (told == own_safe_ || saved_ < told) return false;
  own_safe_ = told;
  return true;
}

}  // namespace streamvec
