// One owner and some workers, message by message in the order that a test says, beside what the scheme is defined to
// do (plain_scheme_testing.h). After every move the owner's rows and every worker's are what the definition says, and
// every message says what was not said before, as far as its codec can.
#pragma once

#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/sync/plain_scheme_testing.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"
#include "streamvec/sync/row_stream.h"

namespace streamvec {

class ScriptedCluster {
 public:
  static constexpr int64_t kDim = 6;
  static constexpr RowKey kRows = 3;
  static constexpr NodeId kOwner = 9;
  static constexpr double kClose = 1e-4, kNearZero = 1e-5;

  struct Options {
    Scheme scheme;
    size_t workers = 4;
    uint64_t seed = 1;  // of what is trained
    // Planted faults, to see that they are found.
    std::optional<Scheme> owner_runs;  // in place of the scheme
    bool drop_residual = false;        // what a codec leaves out of a push is forgotten
    bool forget_staleness = false;     // whatever a push was made of, it is taken as made of the newest rows
    bool ignore_bound = false;         // workers may be one clock further ahead than the scheme says
  };

  explicit ScriptedCluster(const Options& options);

  // A letter a move: 'a', the first worker trains and begins a push; 'A', its push reaches the owner, while it trains
  // on; '1', the next answer reaches it. Returns what is wrong after the first move where anything is; "": nothing.
  std::string play(std::string_view moves);
  // Moves of chance that are possible.
  std::string play_any(int moves);
  // No more training: everybody pushes and hears, one after the other or in a round, so many times.
  std::string play_out(int times);

  // Single moves, after which wrong() says what is wrong.
  void train(size_t worker, RowKey key, const std::vector<float>& change);
  void begin(size_t worker);  // asks for news while it may not train
  void arrive(size_t worker);
  void hear(size_t worker);
  bool can_begin(size_t worker) const { return !workers_[worker].in_flight; }
  bool can_arrive(size_t worker) const { return workers_[worker].pushed.has_value(); }
  bool can_hear(size_t worker) const { return !workers_[worker].answers.empty(); }

  double value_at_owner(RowKey key, int64_t column) const {
    return server_->rows().row(server_->rows().find(key))[column];
  }
  double value_at(size_t worker, RowKey key, int64_t column) const { return workers_[worker].table.row(key)[column]; }
  size_t workers() const { return workers_.size(); }
  // All that was ever trained, by all workers.
  const PlainRows& trained() const { return trained_; }
  int64_t dropped() const { return dropped_; }         // pushes that came too late
  int64_t staleness_most() const { return stalest_; }  // of those taken in
  int64_t held_back() const { return held_back_; }     // times that a worker might not train
  std::string wrong() const { return wrong_.str(); }

 private:
  struct Answer {
    Message message;
    PlainRows known;  // by the worker once it has heard it
    int64_t version = 0, clock = 0, slowest = 0;
  };
  struct Worker {
    Matrix table;
    std::unique_ptr<Replica> replica;
    std::optional<Message> pushed;  // on its way
    PlainScheme::Push push;         // the same, as the scheme is defined on it
    std::deque<Answer> answers;     // on their way
    bool in_flight = false;         // begun and not answered
    // What the worker knows, and has added to that: in the push that is not answered, and since.
    PlainRows known, open, untold;
    PlainRows told;           // by the owner: what is known once all answers are heard
    std::set<RowKey> behind;  // rows that have moved since the owner's last answer to it
    int64_t clock = 0, version = 0, slowest = 0;
  };

  bool in_full() const { return options_.scheme.codec == CodecKind::kFp32; }
  void set_view();
  void deliver(NodeId from, const Outbox& out);
  void train_some(size_t worker);
  void answer(size_t to, Outgoing& outgoing);
  PlainRows read(const Message& message, const PlainRows& wanted, std::string_view what);
  static PlainRow one_bit(const PlainRow& change, const float* said);
  void expect_row(const PlainRow& wanted, const float* row, std::string_view what, RowKey key);
  void check();

  const Options options_;
  Random random_;
  std::vector<Worker> workers_;
  std::unique_ptr<RowServer> server_;
  std::unique_ptr<PlainScheme> defined_;
  PlainRows trained_;
  int64_t dropped_ = 0, stalest_ = 0, held_back_ = 0;
  std::ostringstream wrong_;
};

// The value that all begin with.
inline float scripted_first(RowKey key, int64_t column) {
  return static_cast<float>(key) - static_cast<float>(column) / 4;
}

inline ScriptedCluster::ScriptedCluster(const Options& options)
    : options_(options), random_(options.seed), workers_(options.workers) {
  SyncOptions sync;
  sync.scheme = options.scheme;
  sync.dim = kDim;
  sync.key_end = kRows;
  sync.initial = [](RowKey key, std::span<float> row) {
    for (int64_t k = 0; k < kDim; ++k) row[static_cast<size_t>(k)] = scripted_first(key, k);
  };
  PlainRows first;
  for (RowKey key = 0; key < kRows; ++key) {
    trained_[key] = PlainRow(kDim, 0.0);
    for (int64_t k = 0; k < kDim; ++k) first[key].push_back(scripted_first(key, k));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    sync.self = static_cast<NodeId>(i + 1);
    worker.table = std::move(Matrix::make(kRows, kDim)).value();
    for (RowKey key = 0; key < kRows; ++key) sync.initial(key, worker.table.view().row_span(key));
    worker.replica = std::move(Replica::make(sync, {&worker.table})).value();
    if (options.ignore_bound) worker.replica->set_staleness(options.scheme.staleness + 1);
    worker.known = worker.told = first;
  }
  sync.self = kOwner;
  sync.scheme = options.owner_runs.value_or(options.scheme);
  server_ = std::move(make_row_server(sync)).value();
  defined_ = std::make_unique<PlainScheme>(options.scheme, workers_.size(), first);
  set_view();
}

inline void ScriptedCluster::set_view() {
  View view{1, {}, {kOwner}};
  for (size_t i = 0; i < workers_.size(); ++i) view.workers.push_back(static_cast<NodeId>(i + 1));
  Outbox out;
  server_->set_view(view, out);
  deliver(kOwner, out);
  for (size_t i = 0; i < workers_.size(); ++i) {
    out.clear();
    workers_[i].replica->set_view(view, out);
    deliver(static_cast<NodeId>(i + 1), out);
  }
  STREAMVEC_CHECK(server_->ready());
}

inline void ScriptedCluster::deliver(NodeId from, const Outbox& out) {
  for (const auto& [to, message] : out) {
    Outbox more;
    const Status status =
        to == kOwner ? server_->receive(from, message, more) : workers_[to - 1].replica->receive(from, message, more);
    STREAMVEC_CHECK(status.ok());
    deliver(to, more);
  }
}

inline std::string ScriptedCluster::play(std::string_view moves) {
  for (const char move : moves) {
    if (move >= 'a' && move <= 'z') {
      train_some(static_cast<size_t>(move - 'a'));
      begin(static_cast<size_t>(move - 'a'));
    } else if (move >= 'A' && move <= 'Z') {
      train_some(static_cast<size_t>(move - 'A'));  // while its push is under way
      arrive(static_cast<size_t>(move - 'A'));
    } else if (move >= '1' && move <= '9') {
      hear(static_cast<size_t>(move - '1'));
    }
    if (!wrong().empty()) return "after move '" + std::string(1, move) + "': " + wrong();
  }
  return "";
}

inline std::string ScriptedCluster::play_any(int moves) {
  while (moves > 0) {
    const auto i = random_.below(static_cast<uint32_t>(workers_.size()));
    const uint32_t kind = random_.below(3);
    if (!(kind == 0 ? can_begin(i) : kind == 1 ? can_arrive(i) : can_hear(i))) continue;
    --moves;
    const std::string wrong = play(std::string(1, static_cast<char>("aA1"[kind] + i)));
    if (!wrong.empty()) return std::to_string(moves) + " moves before the end " + wrong;
  }
  return "";
}

inline std::string ScriptedCluster::play_out(int times) {
  for (int time = 0; time < times; ++time)
    for (const auto& [can, move] : {std::pair(&ScriptedCluster::can_begin, &ScriptedCluster::begin),
                                    std::pair(&ScriptedCluster::can_arrive, &ScriptedCluster::arrive),
                                    std::pair(&ScriptedCluster::can_hear, &ScriptedCluster::hear)})
      for (size_t i = 0; i < workers_.size(); ++i)
        while ((this->*can)(i) && wrong().empty()) (this->*move)(i);
  return wrong();
}

// Numbers that a float holds whole, in some rows; in all where the codec leaves some out of every row.
inline void ScriptedCluster::train_some(size_t worker) {
  for (RowKey key = 0; key < kRows; ++key) {
    if (in_full() && random_.uniform() < 0.4f) continue;
    std::vector<float> change;
    for (int64_t k = 0; k < kDim; ++k) change.push_back((static_cast<float>(random_.below(33)) - 16) / 16);
    train(worker, key, change);
  }
}

inline void ScriptedCluster::train(size_t worker, RowKey key, const std::vector<float>& change) {
  const PlainRow exact(change.begin(), change.end());
  PlainRow& untold = workers_[worker].untold[key];
  untold = untold.empty() ? exact : blend(1, untold, 1, exact);
  trained_[key] = blend(1, trained_[key], 1, exact);
  for (int64_t k = 0; k < kDim; ++k) workers_[worker].table.row(key)[k] += change[static_cast<size_t>(k)];
}

inline void ScriptedCluster::begin(size_t i) {
  Worker& worker = workers_[i];
  if (!wrong().empty()) return;
  STREAMVEC_CHECK(can_begin(i));
  const bool may_train = defined_->may_train(worker.clock, worker.slowest);
  if (worker.replica->may_train() != may_train) wrong_ << "worker " << i << " may train, or not, against the scheme; ";
  if (!wrong().empty()) return;
  Outbox out;
  std::vector<RowKey> due;
  if (may_train) {
    for (const auto& [key, row] : worker.untold) due.push_back(key);
    ++worker.clock;
    worker.replica->begin(due, out);
  } else {
    ++held_back_;
    worker.replica->refresh(out);
  }
  worker.pushed = std::move(out.at(0).message);
  worker.in_flight = true;
  if (worker.pushed->rows != due) wrong_ << "worker " << i << " pushes other rows than it has trained; ";
  worker.open = read(*worker.pushed, worker.untold, "a push says");
  for (const auto& [key, change] : worker.open) {
    PlainRow& left = worker.untold[key];
    left = blend(1, left, -1, change);
    for (int64_t k = 0; k < kDim && options_.drop_residual; ++k)
      worker.table.row(key)[k] =
          static_cast<float>(worker.known[key][static_cast<size_t>(k)] + change[static_cast<size_t>(k)]);
    if (in_full()) worker.untold.erase(key);
  }
  worker.push = {i, worker.clock, worker.version, worker.known, worker.open};
  check();
}

inline void ScriptedCluster::arrive(size_t i) {
  Worker& from = workers_[i];
  if (!wrong().empty()) return;
  STREAMVEC_CHECK(can_arrive(i));
  if (options_.forget_staleness) from.pushed->version = server_->version();
  Outbox out;
  if (!server_->receive(static_cast<NodeId>(i + 1), *from.pushed, out).ok()) wrong_ << "the owner refuses a push; ";
  from.pushed.reset();
  std::erase_if(out, [](const Outgoing& outgoing) { return outgoing.to == kOwner; });  // once all have been heard
  const int64_t version = defined_->version();
  const PlainScheme::Taken taken = defined_->take(from.push);
  dropped_ += taken.dropped ? 1 : 0;
  if (!taken.dropped) stalest_ = std::max(stalest_, version - from.push.version);
  for (Worker& worker : workers_) worker.behind.insert(taken.moved.begin(), taken.moved.end());
  if (out.size() != taken.answered.size())
    wrong_ << "the owner answers " << out.size() << " workers and not " << taken.answered.size() << "; ";
  for (size_t a = 0; a < out.size() && wrong().empty(); ++a) answer(taken.answered[a], out[a]);
  check();
}

// Tells the worker all that has moved since the last answer to it.
inline void ScriptedCluster::answer(size_t to, Outgoing& outgoing) {
  Worker& worker = workers_[to];
  if (outgoing.to != to + 1) wrong_ << "worker " << outgoing.to - 1 << " is answered in place of " << to << "; ";
  if (outgoing.message.rows != std::vector<RowKey>(worker.behind.begin(), worker.behind.end()))
    wrong_ << "an answer to worker " << to << " is not of the rows that have moved; ";
  worker.behind.clear();
  PlainRows missed;
  for (const auto& [key, row] : defined_->rows()) missed[key] = blend(1, row, -1, worker.told[key]);
  for (const auto& [key, change] : read(outgoing.message, missed, "an answer says")) {
    // To the last bit, or what nobody has changed would look like a change.
    worker.told[key] = in_full() ? defined_->rows().at(key) : blend(1, worker.told[key], 1, change);
  }
  worker.answers.push_back(
      {std::move(outgoing.message), worker.told, defined_->version(), defined_->clock(to), defined_->slowest()});
}

inline void ScriptedCluster::hear(size_t i) {
  Worker& worker = workers_[i];
  if (!wrong().empty()) return;
  STREAMVEC_CHECK(can_hear(i));
  const Answer answer = std::move(worker.answers.front());
  worker.answers.pop_front();
  Outbox out;
  if (!worker.replica->receive(kOwner, answer.message, out).ok()) wrong_ << "worker " << i << " refuses an answer; ";
  worker.known = answer.known;
  worker.version = answer.version;
  worker.slowest = answer.slowest;
  // An answer speaks of the push that it was sent for, or of an earlier one: a round's that went by without the worker.
  const bool speaks_of_it = answer.clock >= worker.clock || options_.scheme.admission == Admission::kSoftsync;
  if (worker.in_flight && !worker.pushed.has_value() && speaks_of_it) {
    worker.in_flight = false;
    worker.open.clear();
  }
  check();
}

// The rows of a message, each of which has to say as much of `wanted` as the codec can.
inline PlainRows ScriptedCluster::read(const Message& message, const PlainRows& wanted, std::string_view what) {
  PlainRows rows;
  RowReader reader(kDim);
  if (message.rows.empty()) return rows;
  if (message.codec != options_.scheme.codec ||
      !reader.begin(message.codec, message.payload, std::ssize(message.rows)).ok()) {
    wrong_ << what << " what cannot be read; ";
    return rows;
  }
  for (size_t i = 0; i < message.rows.size(); ++i) {
    const RowKey key = message.rows[i];
    const float* row = reader.row(static_cast<int64_t>(i));
    if (wanted.count(key) == 0) continue;
    const PlainRow& change = wanted.at(key);
    expect_row(in_full() ? change : one_bit(change, row), row, what, key);
    rows[key] = in_full() ? change : PlainRow(row, row + kDim);
  }
  return rows;
}

// Seide et al. 2014: the mean of what is not below zero, and of what is. What is nearly zero may count as either.
inline PlainRow ScriptedCluster::one_bit(const PlainRow& change, const float* said) {
  PlainRow sum(2, 0.0), count(2, 0.0), row;
  const auto side = [&](size_t k) -> size_t {
    return (std::abs(change[k]) < kNearZero ? said[k] : static_cast<float>(change[k])) >= 0 ? 1 : 0;
  };
  for (size_t k = 0; k < change.size(); ++k) sum[side(k)] += change[k], count[side(k)] += 1;
  for (size_t k = 0; k < change.size(); ++k) row.push_back(sum[side(k)] / count[side(k)]);
  return row;
}

inline void ScriptedCluster::expect_row(const PlainRow& wanted, const float* row, std::string_view what, RowKey key) {
  // Levels of one bit go by eight bits of mantissa.
  const double share = in_full() ? 0 : 1.0 / 128;
  for (size_t k = 0; k < wanted.size(); ++k)
    if (!(std::abs(wanted[k] - row[k]) <= kClose + share * std::abs(wanted[k]))) {
      wrong_ << what << " " << row[k] << " and not " << wanted[k] << " in row " << key << ", column " << k << "; ";
      return;
    }
}

inline void ScriptedCluster::check() {
  std::vector<float> known(kDim);
  for (const auto& [key, row] : defined_->rows()) {
    expect_row(row, server_->rows().row(server_->rows().find(key)), "the owner has", key);
    for (Worker& worker : workers_) {
      worker.replica->known_value(key, known);
      expect_row(worker.known[key], known.data(), "a worker knows", key);
      PlainRow own = worker.known[key];
      for (const PlainRows* changes : {&worker.open, &worker.untold})
        if (changes->count(key) > 0) own = blend(1, own, 1, changes->at(key));
      expect_row(own, worker.table.row(key), "a worker has", key);
    }
  }
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].replica->idle() == workers_[i].in_flight) wrong_ << "worker " << i << " waits, or not; ";
}

}  // namespace streamvec
