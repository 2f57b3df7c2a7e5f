// How many samples/s does the replay memory give one core, and how long does a snapshot keep training from it?
// Run: bench_replay [ITEMS]   (10^6 unless told; each holds 16 slots, so that they fit into memory)
// Lines: the sum tree alone (draws, updates), then whole tables in batches of 64: what sample() hands out, with the
// chunk shared, its importance and its count; what inserting costs while the oldest leave; what snapshot() takes. The
// figures are the median and the range of 7 passes, in 10^6 per second of processor time (so that a busy machine does
// not count); snapshots in milliseconds.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/replay/sum_tree.h"
#include "streamvec/replay/table.h"

namespace {

using streamvec::Deadline;
using streamvec::mix;
using streamvec::Random;
using streamvec::ReplayItem;
using streamvec::ReplayOptions;
using streamvec::ReplaySample;
using streamvec::ReplaySelector;
using streamvec::ReplayTable;
using streamvec::SumTree;

constexpr int kPasses = 7;
constexpr int64_t kBatch = 64;

double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void report(const char* label, const char* unit, std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  std::printf("%-36s %8.2f %s (%.2f to %.2f)\n", label, figures[figures.size() / 2], unit, figures.front(),
              figures.back());
}

void measure(const char* label, int64_t count, const std::function<void()>& work) {
  std::vector<double> figures;
  for (int pass = 0; pass < kPasses; ++pass) figures.push_back(static_cast<double>(count) / 1e6 / seconds_of(work));
  report(label, "M/s", figures);
}

void measure_tree(size_t items) {
  SumTree tree(items);
  Random random(1);
  std::vector<float> weights(items);
  for (float& weight : weights) weight = 0.5f + random.uniform();
  tree.assign(weights);
  constexpr int64_t kDraws = 2'000'000;
  size_t sum = 0;
  measure("tree: draws", kDraws, [&] {
    std::array<double, kBatch> targets;
    std::array<size_t, kBatch> places;
    for (int64_t done = 0; done < kDraws; done += kBatch) {
      for (double& target : targets) target = static_cast<double>(random.next() >> 11) * 0x1p-53 * tree.total();
      tree.find(targets, places);
      sum += places[0];
    }
  });
  measure("tree: updates", kDraws, [&] {
    for (int64_t i = 0; i < kDraws; ++i) tree.set(random.next() % items, random.uniform());
  });
  if (sum == 1) std::printf("\n");  // so that the draws are not left out
}

std::shared_ptr<const ReplayItem> make_item() {
  auto item = std::make_shared<ReplayItem>();
  item->chunk.slots.assign(16, 1);
  item->chunk.sentence_ends.assign(1, 16);
  return item;
}

std::unique_ptr<ReplayTable> make_table(ReplaySelector selector, int64_t items) {
  ReplayOptions options;
  options.selector = selector;
  options.capacity = items;
  options.bytes_max = int64_t{1} << 40;
  options.limiter = {.samples_per_insert = 1'000, .size_min = 1, .inserts_ahead_max = int64_t{1} << 40};
  return std::move(ReplayTable::create(options)).value();
}

void insert(ReplayTable& table, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!table.insert(make_item(), Deadline::after({})).ok()) std::abort();
}

void sample(ReplayTable& table, int64_t count, bool with_priorities) {
  std::vector<ReplaySample> samples;
  std::vector<uint64_t> keys(kBatch);
  std::vector<float> priorities(kBatch);
  for (int64_t done = 0; done < count; done += kBatch) {
    samples.clear();
    if (!table.sample(kBatch, Deadline::after({}), samples).ok()) std::abort();
    if (!with_priorities) continue;
    for (size_t i = 0; i < samples.size(); ++i) {
      keys[i] = samples[i].key;
      priorities[i] = static_cast<float>(mix(keys[i]) >> 40) * 0x1p-24f;
    }
    table.update_priorities(keys, priorities);
  }
}

void measure_table(const char* name, ReplaySelector selector, int64_t items) {
  const auto table = make_table(selector, items);
  insert(*table, items);
  sample(*table, 2 * items, true);  // until the first sight of every chunk is over, and priorities are known
  sample(*table, 6 * items, false);
  constexpr int64_t kSamples = 1'000'000;
  const std::string label = name;
  measure((label + ": samples").c_str(), kSamples, [&] { sample(*table, kSamples, false); });
  measure((label + ": samples and priorities").c_str(), kSamples, [&] { sample(*table, kSamples, true); });
  measure((label + ": inserts").c_str(), items / 8, [&] { insert(*table, items / 8); });
  std::vector<double> snapshots;
  for (int pass = 0; pass < kPasses; ++pass) snapshots.push_back(seconds_of([&] { (void)table->snapshot(); }) * 1e3);
  report((label + ": snapshot, and freeing it").c_str(), "ms", snapshots);
}

void measure_once(int64_t items) {
  const auto table = make_table(ReplaySelector::kInOrderOnce, items);
  measure("in order once: inserts and samples", items, [&] {
    for (int64_t done = 0; done < items; done += kBatch) {
      insert(*table, kBatch);
      sample(*table, kBatch, false);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t items = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  if (argc > 2 || items < 1'000) {
    std::fprintf(stderr, "usage: bench_replay [ITEMS]   (at least 1000)\n");
    return 2;
  }
  measure_tree(static_cast<size_t>(items));
  measure_table("uniform", ReplaySelector::kUniform, items);
  measure_table("prioritised", ReplaySelector::kPrioritised, items);
  measure_once(items);
  return 0;
}
