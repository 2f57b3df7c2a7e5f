// Streams that several nodes share, each a thread of its own with sources of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "streamvec/cluster/node_testing.h"
#include "streamvec/core/deadline.h"
#include "streamvec/core/testing_wait.h"
#include "streamvec/model/hybrid_vectors.h"
#include "streamvec/replay/table_file.h"
#include "streamvec/source/planted.h"
#include "streamvec/source/testing_files.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/stream_cursors.h"
#include "streamvec/train/trainer.h"
#include "streamvec/transport/inproc.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StreamCluster : public ::testing::Test {
 protected:
  static constexpr int64_t kFirstDate = 1'700'000'000;

  StreamCluster() {
    options_.dim = 16;
    options_.threads = 1;
    options_.min_count = 1;
    options_.vocab_max = 4'000;
    options_.stream.on = true;
    options_.stream.drift = false;
    options_.stream.evaluate_every_s = 0;
    options_.stream.snapshot_every = 0;
    options_.checkpoint_every_s = 0;
    options_.cluster.words_min = 1'000;
    options_.cluster.dead_after_s = 10;
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  // Records "id<TAB>text", each with a word of its own.
  std::string write_records(const std::string& name, int64_t count) {
    std::ofstream file(path(name));
    for (int64_t i = 0; i < count; ++i)
      file << i << "\t" << name << "word" << i << " comes with other words of day " << i % 7 << "\n";
    return "tsv:" + path(name) + "?id=1&text=2";
  }
  // A node for each list of sources. `stops`: what ends each of them.
  std::vector<Result<TrainProgress>> run(const std::vector<std::string>& sources, std::atomic<bool>* stops = nullptr) {
    network_.emplace();
    for (auto& each : ended_) each = false;
    std::vector<std::optional<Result<TrainProgress>>> results(sources.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sources.size(); ++i)
      threads.emplace_back([&, i] {
        TrainOptions options = options_;
        if (!options.cluster.on()) options.cluster.nodes.assign(sources.size(), "a thread");
        options.cluster.network = &*network_;
        options.cluster.rank = static_cast<int32_t>(i);
        TrainHooks hooks;
        if (stops != nullptr) hooks.stop = &stops[i];
        hooks.progress = [this, i](const TrainProgress& now) { documents_read_[i] = now.documents; };
        // What is said to a node that is not there yet is said again two seconds later.
        if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        results[i].emplace(train(options, {sources[i]}, path("model"), hooks));
        ended_[i] = true;
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<Result<TrainProgress>> all;
    for (auto& result : results) all.push_back(std::move(*result));
    return all;
  }
  // A minute at most: a node may have failed.
  void await_documents_read_by(size_t node, int64_t count) const {
    const Deadline deadline = Deadline::after(std::chrono::minutes(1));
    while (documents_read_[node] < count && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void await_a_document_read_by(std::initializer_list<size_t> nodes) const {
    for (const size_t node : nodes) await_documents_read_by(node, 1);
  }
  // Records that are named and dated by their numbers, and then those of them withdrawn that are divisible by 3. Before
  // them a document so long that it waits until its words have slots: theirs have them from the first on.
  std::string write_withdrawn_records(const std::string& name, int64_t count, const std::string& kind = "tsv:") {
    const auto text = [](int lines) {
      std::string text;
      for (int i = 0; i < lines; ++i) text += "some words come with others of every day ";
      return text;
    };
    std::ofstream file(path(name));
    file << "first\t" << kFirstDate - 1 << "\t" << text(600) << "\n";
    for (int64_t i = 0; i < count; ++i) file << i << "\t" << kFirstDate + i << "\t" << text(10) << "\n";
    for (int64_t i = 0; i < count; i += 3) file << i << "\t\t\tgone\n";
    return kind + path(name) + "?id=1&time=2&text=3&delete=4";
  }
  // Of the checkpoint: the records that its replay has.
  std::set<int64_t> records_in_replay() const {
    const Checkpoint saved = std::move(load_checkpoint(path("model"))).value();
    std::set<int64_t> records;
    const ReplaySnapshot replay = std::move(read_replay(saved.extra.at("replay.bin"))).value();
    for (const ReplaySnapshot::Held& held : replay.held) records.insert(held.item->time_s - kFirstDate);
    return records;
  }
  Snapshot model() const { return std::move(load_snapshot(path("model"))).value(); }

  std::optional<InprocNetwork> network_;
  TemporaryDirectory directory_;
  TrainOptions options_;
  std::array<std::atomic<int64_t>, 4> documents_read_{};  // by node
  std::array<std::atomic<bool>, 4> ended_{};              // likewise
};

// Of the words of all classes, how many have one of their own class for their nearest.
double share_among_their_own(const Snapshot& model) {
  std::vector<std::pair<Slot, const PlantedTruth::WordClass*>> words;
  for (const PlantedTruth::WordClass& each : planted_truth().classes)
    for (const std::string& word : each.words)
      if (const Slot slot = model.vocabulary.find(word); slot != kNoSlot) words.emplace_back(slot, &each);
  const auto cosine = [&](Slot a, Slot b) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t d = 0; d < model.input.cols(); ++d) {
      const double x = model.input.row(a)[d], y = model.input.row(b)[d];
      ab += x * y, aa += x * x, bb += y * y;
    }
    return ab / std::sqrt(aa * bb);
  };
  int found = 0;
  for (const auto& [slot, own] : words) {
    double best = -2;
    const PlantedTruth::WordClass* nearest = nullptr;
    for (const auto& [other, of] : words)
      if (other != slot && cosine(slot, other) > best) best = cosine(slot, other), nearest = of;
    found += nearest == own ? 1 : 0;
  }
  return static_cast<double>(found) / static_cast<double>(words.size());
}

TEST_F(StreamCluster, NodesWithSourcesOfTheirOwnFindThePlantedClassesTogether) {
  options_.min_count = 3;
  options_.cluster.sync = "ssp";
  const auto results =
      run({"planted:?tokens=60000&seed=1", "planted:?tokens=60000&seed=2", "planted:?tokens=30000&seed=3"});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(results[0]->tokens, 150'000);
  EXPECT_EQ(results[0]->nodes, 3);
  EXPECT_GT(share_among_their_own(model()), 0.9);
}

TEST_F(StreamCluster, TheFirstNodesModelHasTheWordsAndCountsOfAll) {
  const auto results = run({write_records("a", 300), write_records("b", 200)});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("comes")), 500);
  EXPECT_EQ(words.count(words.find("bword199")), 1);
  EXPECT_EQ(words.count(words.find("aword299")), 1);
}

TEST_F(StreamCluster, SlotsChangeHandsAndTheVocabularyStaysBounded) {
  options_.vocab_max = 50;
  options_.stream.half_life.value = 500;
  const auto results = run({write_records("a", 2'000), write_records("b", 2'000)});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.size(), 50);
  EXPECT_NE(words.find("comes"), kNoSlot);
}

TEST_F(StreamCluster, GoesOnFromTheLeadersCheckpointAndCountsNothingTwice) {
  const std::vector<std::string> sources = {write_records("a", 300), write_records("b", 200)};
  for (int i = 0; i < 2; ++i)
    for (const auto& result : run(sources)) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("comes")), 500);
  EXPECT_EQ(words.count(words.find("bword199")), 1);
  // Another file on the second node begins at its beginning, with the words that are known.
  for (const auto& result : run({sources[0], write_records("c", 40)}))
    ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary more = std::move(model().vocabulary);
  EXPECT_EQ(more.count(more.find("comes")), 540);
  EXPECT_EQ(more.find("bword199"), words.find("bword199"));
  EXPECT_EQ(more.count(more.find("cword39")), 1);
}

TEST_F(StreamCluster, ASourceThatGoesFromNodeToNodeIsReadOnce) {
  const std::string source = write_records("a", 300);
  for (const char* address : {"a:1", "b:1", "c:1"}) {
    testing::Notebook notebook;
    notebook.last = {{1, address}};
    options_.cluster.nodes = {address};
    options_.cluster.registry = &notebook.page(1);
    for (const auto& result : run({source})) ASSERT_TRUE(result.ok()) << result.status().message();
  }
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("comes")), 300);
}

TEST_F(StreamCluster, TheGeneratorGoesByWhatAllNodesHaveMetAlsoWhenTheyGoOn) {
  options_.model = "hybrid";
  options_.stream.replay_ratio = 1;
  const auto met_after = [&](const std::vector<std::string>& sources) {
    for (const auto& result : run(sources)) EXPECT_TRUE(result.ok()) << result.status().message();
    Checkpoint saved = std::move(load_checkpoint(path("model"))).value();
    auto hybrid = std::move(Hybrid::restore(saved.extra.at(kHybridFile), kHybridFile, saved.vocabulary.size(),
                                            saved.optimizer.at(kHybridNgrams).view(), {}))
                      .value();
    return hybrid->met(saved.vocabulary.find("comes"));
  };
  const int64_t first = met_after({write_records("a", 30), write_records("b", 20)});
  EXPECT_LE(first, 50) << "those that came before it had a slot do not count";
  const std::string seen = write_records("c", 100);
  EXPECT_EQ(met_after({seen, write_records("d", 200)}), first + 300);
  EXPECT_GE(met_after({seen, write_records("e", 40)}), first + 340) << "replay may repeat what the first has read";
  std::vector<float> made(16);
  EXPECT_TRUE(model().generator->generate("comesalong", made).ok());
}

TEST_F(StreamCluster, AStopOfTheFirstStopsAllAndSaves) {
  std::ofstream(path("more"), std::ios::app) << "some words that come early\n";
  std::atomic<bool> stops[2] = {false, false};
  std::thread later([&] {
    await_a_document_read_by({0, 1});
    stops[0] = true;
  });
  const auto results = run({"tail:" + path("more") + "?from=start", "tail:" + path("more") + "?from=start"}, stops);
  later.join();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("early")), 2);
}

TEST_F(StreamCluster, ANodeThatIsStoppedAloneLeavesAndTheOthersGoOn) {
  options_.cluster.dead_after_s = 3;
  for (const char* name : {"more", "less"}) std::ofstream(path(name)) << "some words that come early\n";
  std::atomic<bool> stops[2] = {false, false};
  std::thread later([&] {
    await_a_document_read_by({0, 1});
    stops[1] = true;
    std::ofstream(path("more"), std::ios::app) << "some words that come late\n";
    EXPECT_TRUE(eventually("the end of the one that is stopped", [&] { return ended_[1].load(); }));
    EXPECT_TRUE(eventually("the later words", [&] { return documents_read_[0] >= 2; }));
    stops[0] = true;
  });
  const auto results = run({"tail:" + path("more") + "?from=start", "tail:" + path("less") + "?from=start"}, stops);
  later.join();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(results[1]->notes, ::testing::Contains(HasSubstr("left the cluster")));
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("late")), 1);
  EXPECT_EQ(words.count(words.find("early")), 2);
}

TEST_F(StreamCluster, ANodeWhoseTextIsQuietEndsWhenTheLeaderIsLost) {
  options_.cluster.dead_after_s = 3;
  std::ofstream(path("more")) << "some words that come early\n";
  std::atomic<bool> stops[2] = {false, false};
  std::thread later([&] {
    await_a_document_read_by({0, 1});
    network_->cut(1, 2);
    EXPECT_TRUE(eventually("the end of the one that does not hear the leader", [&] { return ended_[1].load(); }));
    for (std::atomic<bool>& stop : stops) stop = true;
  });
  const auto results = run({"tail:" + path("more") + "?from=start", "tail:" + path("more") + "?from=start"}, stops);
  later.join();
  EXPECT_TRUE(results[0].ok()) << results[0].status().message();
  EXPECT_EQ(results[1].status().code(), Code::kUnavailable);
}

TEST_F(StreamCluster, PrioritisedReplayAndNodesThatOnlyOwnRows) {
  options_.stream.replay = "loss";
  options_.cluster.servers = 1;
  const auto results = run({write_records("a", 300), write_records("b", 200), write_records("c", 200)});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("comes")), 500) << "a node that only owns rows reads nothing";
}

TEST_F(StreamCluster, NodesThatOnlyReadFillTheReplayOfThoseThatTrain) {
  options_.min_count = 3;
  options_.cluster.ingest = 2;
  const auto results = run({"planted:?tokens=1000&seed=1", "planted:?tokens=1000&seed=2",
                            "planted:?tokens=60000&seed=3", "planted:?tokens=60000&seed=4"});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(results[0]->tokens, 120'000) << "those that train read nothing";
  EXPECT_GT(results[1]->pairs, 100'000);
  EXPECT_EQ(results[2]->pairs, 0);
  EXPECT_GT(share_among_their_own(model()), 0.9);
}

TEST_F(StreamCluster, ARecordThatAnotherNodeWithdrawsLeavesReplay) {
  options_.cluster.ingest = 2;
  const auto results = run({"tail:" + path("none"), "tail:" + path("none"), write_withdrawn_records("a", 600),
                            write_withdrawn_records("b", 30)});
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const std::set<int64_t> records = records_in_replay();
  EXPECT_GT(records.size(), 10);
  for (const int64_t record : records) EXPECT_NE(record % 3, 0) << record;
  const Checkpoint saved = std::move(load_checkpoint(path("model"))).value();
  EXPECT_THAT(withdrawn_records(saved.cursors), IsEmpty()) << "all has come when the text is over";
}

TEST_F(StreamCluster, WhatWasOnItsWayToBeWithdrawnAtAStopIsGoneWhenTheRunGoesOn) {
  options_.cluster.ingest = 1;
  // Once 64 chunks are in replay each one more waits for a thousand to be trained on, and half of the records are to
  // come before any is withdrawn.
  options_.dim = 64;
  options_.sample = 0;
  options_.stream.replay_chunks = 256;
  options_.stream.replay_ratio = 1'000;
  const std::vector<std::string> sources = {"tail:" + path("none"), write_withdrawn_records("a", 100, "tail:")};
  const auto withdrawn_in_replay = [&] {
    const std::set<int64_t> records = records_in_replay();
    EXPECT_GT(records.size(), 30);
    return std::count_if(records.begin(), records.end(), [](int64_t record) { return record % 3 == 0; });
  };
  const auto run_until_read = [&](int64_t documents) {
    std::atomic<bool> stops[2] = {false, false};
    documents_read_[1] = 0;
    std::thread later([&] {
      await_documents_read_by(1, documents);
      stops[0] = true;
    });
    const auto results = run(sources, stops);
    later.join();
    for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  };
  ASSERT_NO_FATAL_FAILURE(run_until_read(1 + 100 + 34));
  ASSERT_GT(withdrawn_in_replay(), 10);
  std::ofstream(path("a"), std::ios::app) << "last\t" << kFirstDate + 1 << "\tsome words more\n";
  ASSERT_NO_FATAL_FAILURE(run_until_read(1));
  EXPECT_EQ(withdrawn_in_replay(), 0);
}

TEST_F(StreamCluster, AStopEndsNodesThatReadFasterThanOthersTrain) {
  options_.cluster.ingest = 1;
  std::atomic<bool> stops[2] = {false, false};
  std::thread later([&] {
    await_a_document_read_by({1});
    stops[0] = true;
  });
  const auto results = run({"tail:" + path("none"), "planted:?tokens=100000000"}, stops);
  later.join();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
}

TEST_F(StreamCluster, AStopEndsNodesThatOnlyRead) {
  options_.cluster.ingest = 1;
  std::ofstream(path("more")) << "some words that come early\n";
  std::atomic<bool> stops[2] = {false, false};
  std::thread later([&] {
    await_a_document_read_by({1});
    stops[0] = true;
  });
  const auto results = run({"tail:" + path("none"), "tail:" + path("more") + "?from=start"}, stops);
  later.join();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  const Vocabulary words = std::move(model().vocabulary);
  EXPECT_EQ(words.count(words.find("early")), 1);
}

TEST_F(StreamCluster, WhatNodesCannotShareYetIsNamed) {
  const auto refusal = [&] { return run({write_records("a", 3), write_records("b", 3)})[0].status().message(); };
  const TrainOptions good = options_;
  options_.vocab_max = 0;
  EXPECT_THAT(refusal(), HasSubstr("--vocab-max"));
  for (const char* model : {"glove", "subword"}) {
    options_ = good;
    options_.model = model;
    EXPECT_THAT(refusal(), HasSubstr(std::string("not ") + model));
  }
  for (const char* sync : {"ssp", "async", "sandblaster"}) {
    options_ = good;
    options_.model = "rbsg";
    options_.cluster.sync = sync;
    EXPECT_THAT(refusal(), HasSubstr(std::string("--sync ") + sync + " is about owners"));
  }
  for (const char* sync : {"ring", "sandblaster"}) {
    options_ = good;
    options_.cluster.sync = sync;
    EXPECT_THAT(refusal(), HasSubstr(sync));
  }
  options_ = good;
  options_.cluster.ingest = 2;
  EXPECT_THAT(refusal(), HasSubstr("at least one has to train"));
  options_.stream.on = false;
  EXPECT_THAT(refusal(), HasSubstr("try --stream"));
  options_ = good;
  options_.cluster.shard = "rows";
  EXPECT_THAT(refusal(), HasSubstr("--shard rows"));
}

}  // namespace
}  // namespace streamvec
