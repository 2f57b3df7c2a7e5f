#include "streamvec/serve/hnsw_index.h"

#include <gtest/gtest.h>

#include <set>

#include "streamvec/serve/model_board.h"
#include "streamvec/serve/test_models.h"

namespace streamvec {
namespace {

TEST(HnswIndex, FindsNearlyAllThatAnExactSearchFinds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "hnswlib's threads lock rows in any order, which ThreadSanitizer takes for a deadlock to come";
#endif
  const auto model = served(grouped_snapshot(20, 150, 32, 1, 1.0f));
  const std::atomic<bool> stop{false};
  const auto index = HnswIndex::build(model->search_rows(), {.threads = 2}, stop);
  ASSERT_TRUE(index.ok()) << index.status().message();
  int64_t found = 0, all = 0;
  for (Slot slot = 0; slot < 3'000; slot += 30) {
    const auto row = model->search_rows().row_span(slot);
    const SearchRequest request{{row.begin(), row.end()}, {slot}, 10};
    std::set<Slot> exact;
    const auto wanted = model->search({&request, 1});
    for (const Neighbour& one : wanted[0]) exact.insert(one.slot);
    const auto near = (*index)->search(row, request.excluded, 10);
    EXPECT_EQ(near.size(), 10u);
    for (size_t i = 0; i < near.size(); ++i) {
      found += static_cast<int64_t>(exact.count(near[i].slot));
      EXPECT_NE(near[i].slot, slot);
      EXPECT_LE(near[i].cosine, near[i > 0 ? i - 1 : 0].cosine);
    }
    all += 10;
  }
  EXPECT_GT(static_cast<double>(found) / static_cast<double>(all), 0.95);
}

TEST(HnswIndex, LeavesOffWhenItIsToStop) {
  const auto model = served(grouped_snapshot(2, 50, 8));
  const std::atomic<bool> stop{true};
  EXPECT_EQ(HnswIndex::build(model->search_rows(), {}, stop).status().code(), Code::kCancelled);
}

TEST(ModelBoard, SearchesLargeModelsByAnIndexAndSmallOnesExactly) {
  ModelBoard::Options options;
  options.exact_words_max = 150;
  ModelBoard board(options);
  board.publish(grouped_snapshot(2, 50, 8));
  board.await_served();
  EXPECT_TRUE(board.current()->is_exact());
  board.publish(grouped_snapshot(2, 100, 8));
  board.await_served();
  EXPECT_FALSE(board.current()->is_exact());
  EXPECT_EQ(board.current()->number(), 2);
  const auto row = board.current()->search_rows().row_span(0);
  const SearchRequest request{{row.begin(), row.end()}, {0}, 5};
  const auto found = board.current()->search({&request, 1});
  for (const Neighbour& one : found[0]) EXPECT_TRUE(board.current()->vocabulary().word(one.slot).starts_with("g0"));
}

TEST(ModelBoard, KeepsTheModelThatAReaderHolds) {
  ModelBoard board({});
  board.publish(grouped_snapshot(2, 10, 8));
  board.await_served();
  const auto held = board.current();
  board.publish(grouped_snapshot(3, 10, 8));
  board.await_served();
  EXPECT_EQ(held->vocabulary().size(), 20);
  EXPECT_EQ(board.current()->vocabulary().size(), 30);
  EXPECT_EQ(board.current()->number(), held->number() + 1);
}

}  // namespace
}  // namespace streamvec
