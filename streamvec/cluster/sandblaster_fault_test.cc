// The parts of a Sandblaster run in one process: what one tells another goes through a test's hands, one message at a
// time, of any way in any order. Nodes die, and mistakes are planted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/cluster/sandblaster_coordinator.h"
#include "streamvec/cluster/sandblaster_owner.h"
#include "streamvec/cluster/sandblaster_testing.h"
#include "streamvec/cluster/sandblaster_worker.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

using namespace streamvec::testing;  // NOLINT: the function of this folder's tests

class SandblasterByHand {
 public:
  struct Options {
    NodeId dies = 0;  // after some steps; 0: nobody
    uint64_t seed = 1;
    // Planted faults, to see that they are found.
    bool add_twice = false;     // some portions that two nodes bring are added twice
    bool drop_portion = false;  // an owner says that it has a portion, and has not added it
    bool add_late = false;      // what a portion was in the evaluation before is added as well
    bool fetch_point = false;   // portions are worked out where the last step has led, not where they are to be
    bool skip_copies = false;   // half of the second copies are not made
    bool stale_copies = false;  // they are of the first point for ever
    bool keep_history = false;  // L-BFGS goes on with what it remembers when an owner's rows have another
  };
  explicit SandblasterByHand(const Options& options) : options_(options), random_(options.seed) {
    SandblasterCoordinator::Options made;
    made.self = kFirst;
    made.workers = {kFirst, kWorker};
    made.owners = {kOwners.begin(), kOwners.end()};
    made.row_end = kSkipGramRows;
    made.dim = kSkipGramDim;
    made.portions = objective_.portions();
    made.dead_after_s = 0.5;
    made.lbfgs = lbfgs_;
    coordinator_ = std::make_unique<SandblasterCoordinator>(made, post_of(kFirst));
    for (const NodeId id : made.owners) owners_[id] = make_owner(id);
    for (const NodeId id : made.workers)
      workers_[id] =
          std::move(SandblasterWorker::make({kFirst, kSkipGramRows, kSkipGramDim, 1}, objective_, post_of(id))).value();
    for (const NodeId id : kAll) coordinator_->receive(id, {.kind = SandblasterKind::kHello});
    carrier_ = std::thread([this] { carry(); });
  }
  ~SandblasterByHand() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    carrier_.join();
    workers_.clear();  // whose threads may still speak
  }

  // In what it differs from L-BFGS in one process, begun anew where an owner dies; "" when in nothing.
  std::string run() {
    PlainVector point = first_point();
    std::vector<double> values, wanted;
    std::vector<PlainVector> points;
    const auto ended = coordinator_->run(nullptr, [&](const SandblasterProgress& now) -> Result<bool> {
      values.push_back(now.value);
      if (now.iterations != kStepsBefore || options_.dies == 0) return true;
      points.push_back(read_point());
      options_.keep_history ? replace(options_.dies, points.back()) : kill(options_.dies);
      return true;
    });
    if (!ended.ok()) return ended.status().message();
    LbfgsOptions before = lbfgs_;
    before.iterations_max = owner_dies() ? kStepsBefore : kSteps;
    wanted = plain_lbfgs(plain_function(objective_), before, plain_scales(), point);
    if (owner_dies()) {
      LbfgsOptions after = lbfgs_;
      after.iterations_max = kSteps - kStepsBefore;
      const std::vector<double> rest = plain_lbfgs(plain_function(objective_), after, plain_scales(), points.front());
      wanted.insert(wanted.end(), rest.begin(), rest.end());
    }
    if (values.size() != wanted.size()) return "it ended after " + std::to_string(values.size()) + " steps: " + *ended;
    for (size_t i = 0; i < values.size(); ++i)
      if (!(std::abs(values[i] - wanted[i]) < 1e-3 * wanted[i]))
        return "after step " + std::to_string(i + 1) + " the value is " + std::to_string(values[i]) + ", not " +
               std::to_string(wanted[i]);
    return "";
  }
  // A machine that is busy for so long that one which lives falls silent says nothing of the protocol.
  bool left_out_living() const {
    const std::vector<NodeId> left = coordinator_->members();
    return std::any_of(kAll.begin(), kAll.end(), [&](NodeId id) {
      return id != options_.dies && std::find(left.begin(), left.end(), id) == left.end();
    });
  }

 private:
  static constexpr NodeId kFirst = 1, kWorker = 2, kAnother = 99;
  static constexpr std::array<NodeId, 3> kOwners = {3, 4, 5};
  static constexpr std::array<NodeId, 5> kAll = {1, 2, 3, 4, 5};
  static constexpr int64_t kSteps = 10, kStepsBefore = 5;

  bool owner_dies() const { return owners_.count(options_.dies) > 0; }
  SandblasterPost post_of(NodeId from) {
    return [this, from](NodeId to, const SandblasterMessage& message) {
      const std::lock_guard lock(mutex_);
      ways_[{from, to}].push_back(message);
      changed_.notify_all();
    };
  }
  std::unique_ptr<SandblasterOwner> make_owner(NodeId id) {
    return std::move(
               SandblasterOwner::make({id, kFirst, kSkipGramRows, kSkipGramDim, first_row, scale_of_row}, post_of(id)))
        .value();
  }
  PlainVector read_point() {
    PlainVector point(size_t{kSkipGramRows} * kSkipGramDim);
    EXPECT_TRUE(coordinator_
                    ->read_point([&](RowKey key, std::span<const float> row) {
                      std::copy(row.begin(), row.end(), point.begin() + key * kSkipGramDim);
                    })
                    .ok());
    return point;
  }

  void kill(NodeId id) {
    const std::lock_guard lock(mutex_);
    dead_.insert(id);
  }
  // Another has its rows, as of the point, under its name.
  void replace(NodeId id, const PlainVector& point) {
    const std::lock_guard carrying(carry_mutex_);
    SandblasterMessage copies{.kind = SandblasterKind::kCopies, .epoch = 1};
    for (RowKey row = 0; row < kSkipGramRows; ++row) copies.rows.push_back(row);
    copies.values.assign(point.begin(), point.end());
    SandblasterMessage view{.kind = SandblasterKind::kView, .epoch = 1, .number = 1};
    view.rows.assign(kOwners.begin(), kOwners.end());
    owners_[id] = make_owner(id);
    EXPECT_TRUE(owners_[id]->receive(kAnother, copies).ok());
    EXPECT_TRUE(owners_[id]->receive(kFirst, view).ok());
  }

  void carry() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      std::erase_if(ways_, [&](const auto& way) { return way.second.empty() || way.first.second == kAnother; });
      if (ways_.empty()) {
        const std::set<NodeId> dead = dead_;
        lock.unlock();
        say_that_they_live(dead);
        lock.lock();
        changed_.wait_for(lock, std::chrono::milliseconds(5));
        continue;
      }
      auto way = std::next(ways_.begin(), random_.below(static_cast<uint32_t>(ways_.size())));
      const auto [from, to] = way->first;
      const SandblasterMessage message = std::move(way->second.front());
      way->second.pop_front();
      if (dead_.count(from) > 0 || dead_.count(to) > 0) continue;
      lock.unlock();
      {
        const std::lock_guard carrying(carry_mutex_);
        for (auto& [sender, each] : altered(from, to, message)) deliver(sender, to, each);
      }
      lock.lock();
    }
  }
  void say_that_they_live(const std::set<NodeId>& dead) {
    for (const NodeId id : kAll)
      if (dead.count(id) == 0) coordinator_->receive(id, {.kind = SandblasterKind::kAlive});
  }

  using Sent = std::vector<std::pair<NodeId, SandblasterMessage>>;
  // What comes in its place: of a portion's gradient another node brings the same once more.
  Sent altered(NodeId from, NodeId to, SandblasterMessage message) {
    if (message.kind == SandblasterKind::kFetch && options_.fetch_point) message.vector = kPoint;
    if (message.kind == SandblasterKind::kCopies) alter_copies(message);
    if (message.kind != SandblasterKind::kGradient) return {{from, message}};
    Sent sent{{from, message}, {kAnother, message}};
    if (options_.add_twice && message.portion % 3 == 0) sent[1].second.portion += kOtherPortions;
    if (options_.drop_portion && message.portion == 3)
      for (auto& [sender, part] : sent) part.rows.clear(), part.values.clear();
    if (options_.add_late) {
      const SandblasterMessage& now = sent[0].second;
      std::swap(message, last_[{to, now.portion}]);
      if (message.number > 0 && message.number != now.number) {
        message.epoch = now.epoch;
        message.number = now.number;
        message.portion += kOtherPortions;
        sent.emplace_back(kAnother, message);
      }
    }
    return sent;
  }
  void alter_copies(SandblasterMessage& copies) {
    if (options_.skip_copies) {
      copies.rows.resize(copies.rows.size() / 2);
      copies.values.resize(copies.rows.size() * kSkipGramDim);
    }
    for (size_t i = 0; options_.stale_copies && i < copies.rows.size(); ++i) {
      const auto values = copies.values.begin() + static_cast<std::ptrdiff_t>(i) * kSkipGramDim;
      const std::vector<float> now(values, values + kSkipGramDim);
      const std::vector<float>& first = first_copies_.try_emplace(copies.rows[i], now).first->second;
      std::copy(first.begin(), first.end(), values);
    }
  }

  // As SandblasterNode does it.
  void deliver(NodeId from, NodeId to, const SandblasterMessage& message) {
    if (to == kFirst) coordinator_->receive(from, message);
    uint32_t& epoch = epochs_[to];
    if (message.epoch > epoch && message.kind != SandblasterKind::kView) {
      of_later_[to].emplace_back(from, message);
      return;
    }
    if (message.epoch < epoch) return;
    const bool later = message.epoch > epoch;
    epoch = message.epoch;
    if (const auto worker = workers_.find(to); worker != workers_.end()) worker->second->receive(from, message);
    const auto owner = owners_.find(to);
    EXPECT_TRUE(owner == owners_.end() || owner->second->receive(from, message).ok());
    if (later)
      for (const auto& [sender, waiting] : std::exchange(of_later_[to], {})) deliver(sender, to, waiting);
  }

  static constexpr uint32_t kOtherPortions = 1'000;
  const Options options_;
  const LbfgsOptions lbfgs_{.history = 5, .iterations_max = kSteps};
  const SkipGramBatch objective_ = skip_gram();
  std::unique_ptr<SandblasterCoordinator> coordinator_;
  std::map<NodeId, std::unique_ptr<SandblasterOwner>> owners_;
  std::map<NodeId, std::unique_ptr<SandblasterWorker>> workers_;

  std::mutex carry_mutex_;  // of owners, and what follows
  std::map<NodeId, uint32_t> epochs_;
  std::map<NodeId, Sent> of_later_;
  std::map<std::pair<NodeId, uint32_t>, SandblasterMessage> last_;  // of an owner and a portion
  std::map<RowKey, std::vector<float>> first_copies_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Random random_;
  std::map<std::pair<NodeId, NodeId>, std::deque<SandblasterMessage>> ways_;
  std::set<NodeId> dead_;
  bool over_ = false;
  std::thread carrier_;
};

// "" when nothing is wrong.
std::string outcome_of(const SandblasterByHand::Options& options) {
  std::string outcome;
  for (int tries = 0; tries < 10; ++tries) {
    SandblasterByHand run(options);
    outcome = run.run();
    if (!run.left_out_living()) return outcome;
  }
  ADD_FAILURE() << "living nodes fell silent each time; is the machine too busy?";
  return outcome;
}

TEST(SandblasterByHand, TakesTheStepsOfPlainLbfgsWhoeverDies) {
  for (const NodeId dies : {0, 2, 4})
    for (uint64_t seed = 1; seed <= 2; ++seed)
      EXPECT_EQ(outcome_of({.dies = dies, .seed = seed}), "") << "node " << dies << " dies, seed " << seed;
}

// What the test above is worth: with a mistake planted it fails.
TEST(SandblasterByHand, PortionsThatAreAddedTwiceAreFound) {
  EXPECT_NE(outcome_of({.add_twice = true}), "");
}

TEST(SandblasterByHand, PortionsThatAreNotAddedAreFound) {
  EXPECT_NE(outcome_of({.drop_portion = true}), "");
}

TEST(SandblasterByHand, PortionsOfAnEarlierEvaluationAreFound) {
  EXPECT_NE(outcome_of({.add_late = true}), "");
}

TEST(SandblasterByHand, RowsOfAnotherVectorAreFound) {
  EXPECT_NE(outcome_of({.fetch_point = true}), "");
}

TEST(SandblasterByHand, SecondCopiesThatAreNotMadeAreFound) {
  EXPECT_NE(outcome_of({.dies = 4, .skip_copies = true}), "");
}

TEST(SandblasterByHand, SecondCopiesOfAnEarlierPointAreFound) {
  EXPECT_NE(outcome_of({.dies = 4, .stale_copies = true}), "");
}

TEST(SandblasterByHand, AMemoryThatOutlivesTheOwnerOfItsRowsIsFound) {
  EXPECT_NE(outcome_of({.dies = 4, .keep_history = true}), "");
}

}  // namespace
}  // namespace streamvec
