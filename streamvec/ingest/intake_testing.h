// For tests only: sources that do what a script says, and an intake with all it fills.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/ingest/intake.h"

namespace streamvec::testing {

// Hands out what its script says: documents, faults that pass, one that does not.
struct Script {
  int64_t documents = 0;
  std::map<int64_t, Status> faults;  // before document number ...; each once
  std::function<Document(int64_t)> document;
  std::atomic<int64_t> committed{0}, reads{0}, commit_faults{0};
  bool remote = false, shared = false;
  std::function<void()> before_read = [] {}, before_commit = [] {};
};

class ScriptedSource : public Source {
 public:
  ScriptedSource(std::string name, std::shared_ptr<Script> script)
      : name_(std::move(name)), script_(std::move(script)) {}

  Result<int64_t> read(int64_t count_max, Deadline, std::vector<Document>& out) override {
    script_->before_read();
    ++script_->reads;
    int64_t count = 0;
    for (; count < count_max && next_ < script_->documents; ++count, ++next_) {
      if (const auto fault = script_->faults.find(next_); fault != script_->faults.end()) {
        const Status status = fault->second;
        if (status.code() == Code::kUnavailable) script_->faults.erase(fault);
        return status;
      }
      out.push_back(script_->document(next_));
      out.back().cursor = std::to_string(next_ + 1);
    }
    return count;
  }
  Status seek(const std::string& cursor) override {
    next_ = cursor.empty() ? 0 : std::stoll(cursor.substr(cursor.find(':') + 1));
    return {};
  }
  std::string saved(const std::string& cursor) const override { return "saved:" + cursor; }
  Status commit(const std::string& cursor) override {
    script_->before_commit();
    if (script_->commit_faults-- > 0) return error(Code::kUnavailable, "nobody takes it");
    script_->committed = std::stoll(cursor);
    return {};
  }
  Capabilities capabilities() const override { return {.remote = script_->remote, .shared = script_->shared}; }
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return 0; }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::shared_ptr<Script> script_;
  int64_t next_ = 0;
};

using Scripts = std::vector<std::pair<std::string, std::shared_ptr<Script>>>;  // by the sources' names

inline std::shared_ptr<Script> script_of(int64_t documents, const std::string& prefix) {
  auto script = std::make_shared<Script>();
  script->documents = documents;
  script->document = [prefix](int64_t number) {
    Document document;
    document.id = prefix + std::to_string(number);
    document.text = document.id + " in the news\nthe end";
    return document;
  };
  return script;
}

// An intake with all it fills, and a thread that takes from replay.
class Rig {
 public:
  explicit Rig(const Scripts& scripts, Intake::Options options = fast(), const DocumentFilter::Options& filter = {},
               const StreamVocabulary::Options& words = {.min_count = 1}, const std::function<void()>& await_words = {},
               const std::function<void()>& await_slots = {},
               const std::function<void(const std::shared_ptr<const ReplayItem>&)>& withdrawn = {})
      : vocabulary(words) {
    ReplayOptions replay_options;
    replay_options.selector = ReplaySelector::kInOrderOnce;
    replay_options.limiter.samples_per_insert = 1;
    replay_options.limiter.size_min = 1;
    replay_options.limiter.inserts_ahead_max = 64;
    replay = std::move(ReplayTable::create(replay_options)).value();
    std::vector<std::unique_ptr<Source>> sources;
    for (const auto& [name, script] : scripts) sources.push_back(std::make_unique<ScriptedSource>(name, script));
    intake = std::make_unique<Intake>(
        std::move(sources), std::move(DocumentFilter::create(filter)).value(), options,
        Intake::Sinks{vocabulary, tables, *replay, [this](std::span<const Slot> slots) { admitted += slots.size(); },
                      await_words, await_slots, withdrawn});
  }
  ~Rig() {
    intake->stop();
    replay->close();
    if (taker_.joinable()) taker_.join();
  }

  static Intake::Options fast() {
    Intake::Options options;
    options.retry_first = std::chrono::milliseconds(1);
    options.retry_max = std::chrono::milliseconds(4);
    return options;
  }

  void start() {
    taker_ = std::thread([this] {
      std::vector<ReplaySample> samples;
      while (true) {
        samples.clear();
        const auto taken = replay->sample(8, Deadline::after(std::chrono::seconds(10)), samples);
        if (!taken.ok() || *taken == 0) break;
        for (const ReplaySample& sample : samples) tokens_taken += sample.item->chunk.slots.size();
      }
    });
    ASSERT_TRUE(intake->start().ok());
  }
  void run_to_end() {
    start();
    taker_.join();
    intake->stop();
  }
  // All of replay, once the sources have ended: nobody else takes anything.
  std::vector<std::shared_ptr<const ReplayItem>> read_to_end() {
    EXPECT_TRUE(intake->start().ok());
    while (!intake->over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<ReplaySample> samples;
    while (replay->sample(8, Deadline::never(), samples).value() > 0) {
    }
    std::vector<std::shared_ptr<const ReplayItem>> items;
    for (const ReplaySample& sample : samples) items.push_back(sample.item);
    return items;
  }
  int64_t count(const std::string& word) const {
    const Vocabulary words = vocabulary.to_vocabulary();
    const Slot slot = words.find(word);
    return slot == kNoSlot ? 0 : words.count(slot);
  }

  StreamVocabulary vocabulary;
  SamplingTablesBuffer tables{{}};
  std::unique_ptr<ReplayTable> replay;
  std::unique_ptr<Intake> intake;
  std::atomic<size_t> admitted{0}, tokens_taken{0};

 private:
  std::thread taker_;
};

inline void expect_each_once(const Rig& rig, const std::string& prefix, int64_t documents) {
  for (int64_t i = 0; i < documents; ++i) EXPECT_EQ(rig.count(prefix + std::to_string(i)), 1) << prefix << i;
}

}  // namespace streamvec::testing
