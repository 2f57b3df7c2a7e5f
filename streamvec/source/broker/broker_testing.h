// For tests only: what readers of brokers are asked alike.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/source/live/live_testing.h"
#include "streamvec/source/source.h"
#include "streamvec/source/testing_servers.h"

namespace streamvec {

// How often each text was counted by a reader that is killed again and again: it reads some, saves the place of one of
// them (those after it are forgotten), sometimes commits, and dies. `between` runs before each life.
inline std::map<std::string, int> count_through_restarts(const std::function<std::unique_ptr<Source>()>& open,
                                                         size_t count, const std::function<void(int)>& between) {
  std::map<std::string, int> counted;
  std::string saved;
  Random random(7);
  size_t total = 0;
  for (int life = 0; life < 60 && total < count; ++life) {
    between(life);
    const std::unique_ptr<Source> source = open();
    EXPECT_TRUE(source->seek(saved).ok());
    std::vector<Document> documents = read_documents(*source, std::min<size_t>(50, count - total));
    const size_t kept = documents.empty() ? 0 : 1 + random.below(static_cast<uint32_t>(documents.size()));
    for (size_t i = 0; i < kept; ++i) ++counted[documents[i].text];
    total += kept;
    if (kept > 0) saved = source->saved(documents[kept - 1].cursor);
    if (kept > 0 && random.below(3) > 0) (void)source->commit(documents[kept - 1].cursor).ok();
  }
  return counted;
}

// Whether a reader that waits hears at once of what `publish` adds; one that asks again each second would take that
// long. A busy machine may delay one answer, not each of twenty.
inline bool is_woken(Source& source, const std::function<void()>& publish) {
  for (int tries = 0; tries < 20; ++tries) {
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      publish();
    });
    std::vector<Document> documents;
    const auto begin = Deadline::Clock::now();
    const Result<int64_t> got = source.read(100, Deadline::after(std::chrono::seconds(30)), documents);
    const auto took = Deadline::Clock::now() - begin;
    later.join();
    if (!got.ok() || *got != 1) return false;
    if (took < std::chrono::milliseconds(900)) return true;
  }
  return false;
}

// "message 1" to "message COUNT", each once.
inline void expect_each_once(const std::map<std::string, int>& counted, int count) {
  EXPECT_EQ(counted.size(), static_cast<size_t>(count));
  for (int number = 1; number <= count; ++number) {
    const auto found = counted.find("message " + std::to_string(number));
    EXPECT_TRUE(found != counted.end() && found->second == 1) << "message " << number;
  }
}

// "message 1" to "message COUNT" come in order though the server dies after 20 of them; the source says so meanwhile.
inline void expect_all_in_order(Source& source, ServerProcess& server, size_t count) {
  std::vector<Document> documents = read_documents(source, 20);
  server.kill();
  const Status status = first_error(source, &documents);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
  server.start();
  for (Document& document : read_documents(source, count - documents.size())) documents.push_back(std::move(document));
  ASSERT_EQ(documents.size(), count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(documents[i].text, "message " + std::to_string(i + 1));
}

}  // namespace streamvec
