#include "streamvec/serve/call_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "streamvec/serve/test_models.h"

namespace streamvec {
namespace {

using testing::ElementsAre;

// Tells in which order calls are begun and how many were sought together; the first waits for a sign.
struct Log {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> begun;
  bool open = false;
  int64_t finished = 0;

  void begin(const std::string& name) {
    std::unique_lock lock(mutex);
    begun.push_back(name);
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }
  void await(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), condition));
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

class LoggedCall final : public Call {
 public:
  LoggedCall(Log& log, std::string name, bool seeks = false) : log_(log), name_(std::move(name)), seeks_(seeks) {}
  std::optional<SearchRequest> begin(const std::shared_ptr<const ServedModel>& model) override {
    log_.begin(name_);
    if (!seeks_) return std::nullopt;
    const auto row = model->search_rows().row_span(0);
    return SearchRequest{{row.begin(), row.end()}, {0}, 3};
  }
  void finish(const std::shared_ptr<const ServedModel>&, const std::vector<Neighbour>& found) override {
    const std::lock_guard lock(log_.mutex);
    log_.finished += found.size() == 3;
    log_.changed.notify_all();
  }

 private:
  Log& log_;
  const std::string name_;
  const bool seeks_;
};

TEST(CallQueue, LetsClientsTakeTurns) {
  Log log;
  CallQueue queue({.threads = 1, .together_max = 1}, [] { return nullptr; });
  ASSERT_TRUE(queue.push("first", std::make_unique<LoggedCall>(log, "first")));
  log.await([&] { return log.begun.size() == 1; });
  for (int i = 0; i < 3; ++i) queue.push("greedy", std::make_unique<LoggedCall>(log, "greedy"));
  queue.push("modest", std::make_unique<LoggedCall>(log, "modest"));
  log.let_go();
  log.await([&] { return log.begun.size() == 5; });
  EXPECT_THAT(log.begun, ElementsAre("first", "greedy", "modest", "greedy", "greedy"));
}

TEST(CallQueue, RefusesWhatIsTooMuchOfOneClientOrOfAll) {
  Log log;
  CallQueue queue({.threads = 1, .waiting_max = 3, .client_waiting_max = 2, .together_max = 1}, [] { return nullptr; });
  queue.push("first", std::make_unique<LoggedCall>(log, "first"));
  log.await([&] { return log.begun.size() == 1; });
  EXPECT_TRUE(queue.push("a", std::make_unique<LoggedCall>(log, "a")));
  EXPECT_TRUE(queue.push("a", std::make_unique<LoggedCall>(log, "a")));
  EXPECT_FALSE(queue.push("a", std::make_unique<LoggedCall>(log, "a")));
  EXPECT_TRUE(queue.push("b", std::make_unique<LoggedCall>(log, "b")));
  EXPECT_FALSE(queue.push("c", std::make_unique<LoggedCall>(log, "c")));
  EXPECT_EQ(queue.waiting(), 3);
  log.let_go();
  log.await([&] { return log.begun.size() == 4; });
}

TEST(CallQueue, FinishesSearchesThatWaitTogether) {
  Log log;
  const auto model = served(grouped_snapshot(2, 10, 8));
  CallQueue queue({.threads = 2}, [&] { return model; });
  log.let_go();
  for (int i = 0; i < 100; ++i)
    while (!queue.push("a", std::make_unique<LoggedCall>(log, "a", true))) std::this_thread::yield();
  log.await([&] { return log.finished == 100; });
}

}  // namespace
}  // namespace streamvec
