#include "streamvec/cluster/ring_standing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/core/testing_seeds.h"
#include "streamvec/sync/dense_replica.h"
#include "streamvec/sync/shared_step.h"

namespace streamvec {
namespace {

constexpr int kSimulatedNodes = 4, kNewcomersMost = 2;  // at first, and that join later
constexpr int64_t kSimulatedRows = 6, kSimulatedCols = 6;
constexpr int kSimulatedSteps = 8;     // that a node trains
constexpr int kTicksMax = 5'000;       // some hundreds are needed
constexpr int kNoticedAfterMost = 60;  // ticks from a death to the membership without that node
constexpr float kElsewhere = 1'000;    // where tables of those that join begin

// What a driver of replicas may get wrong. The checks have to find each.
enum class Mistake {
  kNone,
  kNothingTakenBack,
  kNobodyTells,
  kStageNotTold,
  kOldCount,
  kJoinsAsOneOfTheFirst,
  kKeepsItsOwn
};

// What goes round: changes of a table, as they are or as two thin matrices, or slopes, of which all make one step.
enum class Kind { kChanges, kThin, kOneStep };

struct Setting {
  uint64_t seed = 1;
  std::vector<int> deaths;  // ticks at which a node, drawn by the seed, dies
  std::vector<int> joins;   // and at which one comes
  Kind kind = Kind::kChanges;
  Mistake mistake = Mistake::kNone;
};

// Rings as nodes see them, without a network: nobody has what comes of a meeting (a reduction, or what is told) before
// everybody of that ring has brought its part, and of those where somebody has died each gets it or not, by chance.
// "Training" adds whole numbers, each node to its own column; or leaves slopes of so many pairs that their sum tells
// whose batches it is of.
class SimulatedRings {
 public:
  explicit SimulatedRings(const Setting& setting) : setting_(setting), random_(setting.seed) {
    for (Node& node : nodes_) node.id = static_cast<int>(&node - nodes_.data());
    for (int id = 0; id < kSimulatedNodes; ++id) {
      begin(nodes_[static_cast<size_t>(id)], 0);
      members_[1].insert(id);
    }
  }

  // What is wrong at the end; empty: nothing.
  std::string run() {
    size_t died = 0, joined = 0;
    int told_at = -1;
    for (int tick = 0; tick < kTicksMax; ++tick) {
      for (; died < setting_.deaths.size() && tick == setting_.deaths[died]; ++died) {
        kill();
        told_at = tick + static_cast<int>(random_.below(kNoticedAfterMost));
      }
      for (; joined < setting_.joins.size() && tick == setting_.joins[joined]; ++joined) join();
      if (tick == told_at) tell_of_deaths();
      const std::vector<int> alive = living();
      step(nodes_[static_cast<size_t>(alive[random_.below(static_cast<uint32_t>(alive.size()))])]);
      const bool more = died < setting_.deaths.size() || joined < setting_.joins.size();
      if (told_at <= tick && !more && all_over()) return differences();
    }
    return "it hangs";
  }
  int brought_up() const { return brought_up_; }

 private:
  using Stage = RingStanding::Stage;
  enum class At { kWaiting, kFirst, kSecond, kMade, kRest, kGathering, kTelling };
  struct Node {
    int id = 0;
    bool dead = true;  // or yet to come
    bool came_late = false;
    Matrix table, slopes, momentum, variance;
    Matrix steps = std::move(Matrix::make(1, 1)).value();
    SharedSlopes shared;
    std::unique_ptr<RoundValues> replica;
    RingStanding standing;
    uint32_t ring = 0;
    int meeting = 0;  // of that ring
    At at = At::kWaiting;
    std::vector<float> first, second;
    RingAgreement agreement;
    RingStanding furthest;
    int trained = 0;
    float total = 0;
    std::set<float> totals = {0};
  };
  struct Meeting {
    std::map<int, std::vector<float>> brought;
    std::map<int, bool> reaches;  // after a death
  };

  std::unique_ptr<RoundValues> changes(Node& node) const {
    DenseTable dense;
    dense.live = &node.table;
    dense.combine = Combine::kSum;
    dense.rank = setting_.kind == Kind::kThin ? 1 : 0;
    return std::move(DenseReplica::make({.tables = {dense}})).value();
  }
  std::unique_ptr<RoundValues> one_step(Node& node) {
    node.shared.tables = {{&node.table, &node.slopes, &node.momentum, &node.variance, true}};
    node.shared.steps = &node.steps;
    node.shared.rate = 1;
    node.shared.products = std::move(make_packed_gemm("simd")).value();
    return std::make_unique<SharedStep>(node.shared, team_);
  }

  void begin(Node& node, float first) {
    node.dead = false;
    for (Matrix* matrix : {&node.table, &node.slopes, &node.momentum, &node.variance})
      *matrix = std::move(Matrix::make(kSimulatedRows, kSimulatedCols)).value();
    for (int64_t row = 0; row < kSimulatedRows; ++row) std::fill_n(node.table.row(row), kSimulatedCols, first);
    *node.steps.row(0) = first;
    node.replica = setting_.kind == Kind::kOneStep ? one_step(node) : changes(node);
  }
  // Beside those whose deaths have not been noticed, or in their place.
  void join() {
    Node& node = nodes_[static_cast<size_t>(next_++)];
    begin(node, kElsewhere);
    if (setting_.mistake != Mistake::kJoinsAsOneOfTheFirst) node.standing.rounds = RingStanding::kNewcomer;
    const std::set<int> before = members_[told_];
    tell_of_deaths();
    if (random_.uniform() < 0.5f) members_[told_].insert(before.begin(), before.end());
  }

  std::vector<int> living() const {
    std::vector<int> alive;
    for (const Node& node : nodes_)
      if (!node.dead) alive.push_back(node.id);
    return alive;
  }
  bool all_over() const {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const Node& node) { return node.dead || node.standing.stage == Stage::kOver; });
  }
  void kill() {
    const std::vector<int> alive = living();
    nodes_[static_cast<size_t>(alive[random_.below(static_cast<uint32_t>(alive.size()))])].dead = true;
  }
  void tell_of_deaths() {
    const std::vector<int> alive = living();
    members_[++told_] = {alive.begin(), alive.end()};
  }

  Meeting& meeting(const Node& node) { return meetings_[{node.ring, node.meeting}]; }
  void bring(Node& node, std::vector<float> values) { meeting(node).brought[node.id] = std::move(values); }
  bool all_have_brought(Node& node) {
    Meeting& now = meeting(node);
    bool struck = false;
    for (const int id : members_[node.ring]) {
      if (now.brought.count(id) == 0) return false;
      struck = struck || nodes_[static_cast<size_t>(id)].dead;
    }
    if (!struck) return true;
    return now.reaches.try_emplace(node.id, random_.uniform() < 0.5f).first->second;
  }
  std::vector<float> mean(Node& node) {
    Meeting& now = meeting(node);
    std::vector<float> sum(now.brought.begin()->second.size());
    for (const auto& [id, values] : now.brought)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    for (float& value : sum) value /= static_cast<float>(now.brought.size());
    ++node.meeting;
    return sum;
  }

  void step(Node& node) {
    if (node.ring < told_) return form(node);
    switch (node.at) {
      case At::kWaiting:
        return has_text(node) && random_.uniform() < 0.5f ? train(node) : begin_round(node);
      case At::kGathering:
        if (all_have_brought(node)) agree_with_others(node);
        return;
      case At::kTelling:
        if (all_have_brought(node)) bring_up(node);
        return;
      default:
        if (all_have_brought(node)) end_reduction(node);
    }
  }

  // For one that comes when everybody's text is over there is none.
  static bool has_text(const Node& node) {
    return node.trained < kSimulatedSteps && node.standing.stage == Stage::kRounds;
  }
  void train(Node& node) {
    if (setting_.kind == Kind::kOneStep) return leave_slopes(node);
    ++node.trained;
    const auto by = static_cast<float>(1 + random_.below(5));
    node.table.row(random_.below(kSimulatedRows))[node.id] += by;
    node.totals.insert(node.total += by);
  }

  // The next batch waits until the last one is in a step.
  void leave_slopes(Node& node) {
    if (node.shared.pairs > 0) return begin_round(node);
    ++node.trained;
    node.shared.pairs = pairs_of(node.id);
    for (int64_t row = 0; row < kSimulatedRows; ++row)
      for (int64_t k = 0; k < kSimulatedCols; ++k) node.slopes.row(row)[k] += random_.uniform() - 0.5f;
  }
  // A digit for each node.
  static double pairs_of(int id) { return std::pow(kDigit, id); }

  void begin_round(Node& node) {
    if (node.standing.stage == Stage::kOver) return;
    if (node.standing.stage == Stage::kRest) {
      std::vector<float> rest(static_cast<size_t>(node.replica->rest_size()));
      node.replica->bring_rest(rest);
      node.at = At::kRest;
      return bring(node, std::move(rest));
    }
    node.first.resize(static_cast<size_t>(node.replica->size()) + 1);
    node.first.back() = node.trained == kSimulatedSteps ? 1 : 0;
    node.replica->bring({node.first.data(), node.first.size() - 1});
    node.at = At::kFirst;
    bring(node, node.first);
  }

  void end_reduction(Node& node) {
    if (node.at == At::kMade) return take_made(node);
    std::vector<float> means = mean(node);
    if (node.at == At::kRest) {
      node.replica->take_rest(means);
      return stand_at(node, {node.standing.rounds + 1, Stage::kOver});
    }
    if (node.at == At::kFirst) node.first = means;
    if (node.at == At::kFirst && !node.replica->parts().empty()) return make_part(node);
    const std::span<const float> first(node.first.data(), node.first.size() - 1);
    if (node.at == At::kFirst && node.replica->second_size() > 0) {
      node.second.resize(static_cast<size_t>(node.replica->second_size()));
      node.replica->bring_second(first, node.second);
      node.at = At::kSecond;
      return bring(node, node.second);
    }
    if (node.at == At::kFirst) means.clear();
    node.replica->take(first, means);
    const Stage next = node.first.back() < 1           ? Stage::kRounds
                       : node.replica->rest_size() > 0 ? Stage::kRest
                                                       : Stage::kOver;
    stand_at(node, {node.standing.rounds + 1, next});
  }

  void make_part(Node& node) {
    const std::set<int>& members = members_[node.ring];
    const auto part = static_cast<size_t>(std::distance(members.begin(), members.find(node.id)));
    const auto begins = node.replica->parts();
    const std::span<float> means(node.first.data() + begins[part], begins[part + 1] - begins[part]);
    const auto totals = node.first.size() - 3;  // pairs, rates, and whose text is over
    taken_[node.standing.rounds] = std::llround(double{node.first[totals]} * static_cast<double>(members.size()));
    node.replica->make_part(part, means);
    node.at = At::kMade;
    bring(node, {means.begin(), means.end()});
  }

  void take_made(Node& node) {
    const auto begins = node.replica->parts();
    size_t part = 0;
    for (const auto& [id, made] : meeting(node).brought)
      std::copy(made.begin(), made.end(), node.first.begin() + static_cast<ptrdiff_t>(begins[part++]));
    ++node.meeting;
    node.replica->take({node.first.data(), node.first.size() - 1}, {});
    stand_at(node, {node.standing.rounds + 1, node.first.back() < 1 ? Stage::kRounds : Stage::kOver});
  }

  static void stand_at(Node& node, const RingStanding& standing) {
    node.standing = standing;
    node.at = At::kWaiting;
  }

  void form(Node& node) {
    node.ring = told_;
    node.meeting = 0;
    node.at = At::kGathering;
    bring(node, {static_cast<float>(node.standing.rounds), static_cast<float>(node.standing.stage)});
  }

  void agree_with_others(Node& node) {
    std::vector<RingStanding> all;
    for (const auto& [id, told] : meeting(node).brought)
      all.push_back({static_cast<int64_t>(told[0]), static_cast<Stage>(static_cast<int64_t>(told[1]))});
    ++node.meeting;
    node.agreement = agree(all);
    node.furthest = all[node.agreement.furthest];
    const bool behind = node.standing.rounds < node.furthest.rounds;
    if (setting_.mistake != Mistake::kOldCount) node.replica->set_nodes(static_cast<int64_t>(all.size()));
    if (node.ring == 1) node.replica->set_nodes(kSimulatedNodes);
    const bool tells = node.agreement.differ && setting_.mistake != Mistake::kNobodyTells;
    if (tells ? !behind : setting_.mistake != Mistake::kNothingTakenBack) node.replica->undo();
    node.at = At::kWaiting;
    if (!tells) return;
    std::vector<float> agreed;
    if (!behind) {
      agreed.resize(static_cast<size_t>(node.replica->agreed_size()));
      node.replica->copy_agreed(agreed);
    }
    node.at = At::kTelling;
    bring(node, std::move(agreed));
  }

  void bring_up(Node& node) {
    const std::set<int>& members = members_[node.ring];
    const int teller = *std::next(members.begin(), static_cast<int64_t>(node.agreement.furthest));
    const std::vector<float> agreed = meeting(node).brought.at(teller);
    ++node.meeting;
    node.at = At::kWaiting;
    if (node.standing.rounds == node.furthest.rounds) return;
    ++brought_up_;
    node.came_late = node.standing.is_new() && node.furthest.stage != Stage::kRounds;
    if (setting_.mistake != Mistake::kKeepsItsOwn || !node.standing.is_new()) node.replica->adopt(agreed);
    if (setting_.mistake == Mistake::kStageNotTold) node.furthest.stage = node.standing.stage;
    stand_at(node, node.furthest);
  }

  // Of the rounds that count, those of whose parts all were made last.
  std::string differences_of_steps() const {
    const Node& one = nodes_[static_cast<size_t>(living().front())];
    int64_t pairs = 0;
    for (int64_t round = 0; round < one.standing.rounds; ++round) pairs += taken_.at(round);
    for (const Node& other : nodes_) {
      const auto batches = static_cast<int>(pairs / std::llround(pairs_of(other.id)) % kDigit);
      if (other.dead ? batches > other.trained : batches != (other.came_late ? 0 : kSimulatedSteps))
        return "of " + std::to_string(other.trained) + " batches " + std::to_string(batches) + " were stepped";
      if (!other.dead && !equal(one.table, other.table, 0)) return "tables are not equal";
      if (!other.dead && *other.steps.row(0) != *one.steps.row(0)) return "numbers of steps are not equal";
    }
    return {};
  }

  std::string differences() const {
    if (setting_.kind == Kind::kOneStep) return differences_of_steps();
    const Node& one = nodes_[static_cast<size_t>(living().front())];
    const bool thin = setting_.kind == Kind::kThin;
    const float slack = thin ? 0.02f : 0;
    for (const Node& other : nodes_) {
      const float sum = sum_of(one.table, other.id);
      if (!other.dead && std::abs(sum - other.total) > slack)
        return "of " + std::to_string(other.total) + " that were added there are " + std::to_string(sum);
      // Of thin matrices a part of a change may have gone round.
      if (other.dead && !thin && other.totals.count(sum) == 0) return "a dead node never had " + std::to_string(sum);
      if (!other.dead && !equal(one.table, other.table, slack)) return "tables are not equal";
    }
    return {};
  }
  static float sum_of(const Matrix& table, int64_t column) {
    float sum = 0;
    for (int64_t row = 0; row < kSimulatedRows; ++row) sum += table.row(row)[column];
    return sum;
  }
  static bool equal(const Matrix& a, const Matrix& b, float slack) {
    for (int64_t row = 0; row < kSimulatedRows; ++row)
      for (int64_t k = 0; k < kSimulatedCols; ++k)
        if (std::abs(a.row(row)[k] - b.row(row)[k]) > slack) return false;
    return true;
  }

  static constexpr int64_t kDigit = 16;  // more than the batches of a node

  const Setting setting_;
  Random random_;
  ThreadTeam team_{1};
  std::map<int64_t, int64_t> taken_;  // pairs by round
  std::array<Node, kSimulatedNodes + kNewcomersMost> nodes_;
  int next_ = kSimulatedNodes;
  uint32_t told_ = 1;
  std::map<uint32_t, std::set<int>> members_;
  std::map<std::pair<uint32_t, int>, Meeting> meetings_;
  int brought_up_ = 0;
};

// Ticks of a run. Of one step a batch it is longer.
int moments_of(Kind kind) {
  return kind == Kind::kOneStep ? 600 : 240;
}

// Deaths at every moment of a run, half of them with a second one soon after; by so many seeds.
std::vector<Setting> settings_of(Kind kind, Mistake mistake, int64_t from, int64_t seeds) {
  std::vector<Setting> settings;
  for (int64_t seed = from; seed < from + seeds; ++seed) {
    const auto first = static_cast<int>((seed - 1) % moments_of(kind));
    settings.push_back({mix(7, static_cast<uint64_t>(seed - 1)), {first}, {}, kind, mistake});
    if (first % 2 == 1) settings.back().deaths.push_back(first + 1 + first % 37);
  }
  return settings;
}

// Nodes that join at every moment: a third of the time two, at once or soon after; half of the time beside deaths.
std::vector<Setting> joining_settings_of(Kind kind, Mistake mistake, int64_t from, int64_t seeds) {
  std::vector<Setting> settings = settings_of(kind, mistake, from, seeds);
  for (size_t i = 0; i < settings.size(); ++i) {
    Setting& setting = settings[i];
    const int first = setting.deaths.front();
    setting.joins = {first};
    if (i % 3 == 0) setting.joins.push_back(first + static_cast<int>(i % 4) * 7);
    if (i % 4 < 2) setting.deaths.clear();
    for (int& death : setting.deaths) death = std::max(death + static_cast<int>(setting.seed % 80) - 40, 0);
  }
  return settings;
}

// How many nodes were told what others agreed to.
int64_t run_all(const std::vector<Setting>& settings) {
  int64_t brought_up = 0;
  for (const Setting& setting : settings) {
    SimulatedRings rings(setting);
    const std::string wrong = rings.run();
    EXPECT_EQ(wrong, "") << "seed " << setting.seed << ", kind " << static_cast<int>(setting.kind) << ", deaths at "
                         << ::testing::PrintToString(setting.deaths) << ", joins at "
                         << ::testing::PrintToString(setting.joins);
    brought_up += rings.brought_up();
  }
  return brought_up;
}

TEST(RingStanding, NothingIsLostOrCountedTwiceWhereverARoundIsCutShort) {
  for (const Kind kind : {Kind::kChanges, Kind::kThin, Kind::kOneStep}) {
    const int64_t seeds = seeds_or(moments_of(kind));
    const int64_t brought_up = run_all(settings_of(kind, Mistake::kNone, first_seed(), seeds));
    EXPECT_GE(brought_up, 20 * seeds / moments_of(kind));  // some had ended a round and others had not
  }
}

TEST(RingStanding, NodesThatJoinEndWithWhatAllHaveLearntWheneverTheyComeAndWhoeverDies) {
  for (const Kind kind : {Kind::kChanges, Kind::kThin, Kind::kOneStep}) {
    const int64_t seeds = seeds_or(moments_of(kind));
    EXPECT_GE(run_all(joining_settings_of(kind, Mistake::kNone, first_seed(), seeds)), seeds);
  }
}

TEST(RingStanding, TheChecksFindEveryMistake) {
  const auto is_found = [](const std::vector<Setting>& settings) {
    return std::any_of(settings.begin(), settings.end(),
                       [](const Setting& setting) { return !SimulatedRings(setting).run().empty(); });
  };
  for (const Mistake mistake :
       {Mistake::kNothingTakenBack, Mistake::kNobodyTells, Mistake::kStageNotTold, Mistake::kOldCount})
    EXPECT_TRUE(is_found(settings_of(Kind::kChanges, mistake, 1, moments_of(Kind::kChanges))))
        << static_cast<int>(mistake);
  for (const Mistake mistake : {Mistake::kNobodyTells, Mistake::kStageNotTold})
    EXPECT_TRUE(is_found(settings_of(Kind::kOneStep, mistake, 1, moments_of(Kind::kOneStep))))
        << static_cast<int>(mistake);
  for (const Kind kind : {Kind::kChanges, Kind::kOneStep})
    for (const Mistake mistake : {Mistake::kJoinsAsOneOfTheFirst, Mistake::kKeepsItsOwn})
      EXPECT_TRUE(is_found(joining_settings_of(kind, mistake, 1, moments_of(kind)))) << static_cast<int>(mistake);
}

TEST(RingStanding, TheFirstOfThoseThatAreFurthestTells) {
  const RingStanding behind{3}, ahead{4, RingStanding::Stage::kRest};
  const RingAgreement differ = agree(std::vector{behind, ahead, behind, ahead});
  EXPECT_TRUE(differ.differ);
  EXPECT_EQ(differ.furthest, 1u);
  EXPECT_FALSE(agree(std::vector{ahead, ahead}).differ);
}

}  // namespace
}  // namespace streamvec
