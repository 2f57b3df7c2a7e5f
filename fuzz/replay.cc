// A saved replay table (replay/table_file.h): what reads is written and read to the same bytes, and a table of any
// selector goes on from it with samples that it holds.
#include <chrono>
#include <cmath>

#include "fuzz/fuzz.h"
#include "streamvec/replay/table_file.h"

namespace streamvec {
namespace {

std::string bytes_of(const ReplaySnapshot& snapshot) {
  std::string bytes;
  const Status written = write_replay(snapshot, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  STREAMVEC_CHECK(written.ok());
  return bytes;
}

ReplayOptions options_of(ReplaySelector selector) {
  ReplayOptions options{.selector = selector, .capacity = 64};
  options.limiter.size_min = 1;
  if (selector == ReplaySelector::kInOrderOnce) options.limiter.samples_per_insert = 1;
  if (selector == ReplaySelector::kPrioritised) options.half_life = 100;
  return options;
}

void sample_some(ReplayTable& table) {
  std::vector<ReplaySample> samples;
  table.finish();
  const auto count = table.sample(8, Deadline::after(std::chrono::seconds(0)), samples);
  for (const ReplaySample& sample : samples) {
    STREAMVEC_CHECK(sample.item != nullptr && sample.importance > 0 && sample.importance <= 1);
    const float priority = 0.5F;
    table.update_priorities({&sample.key, 1}, {&priority, 1});
  }
  if (count.ok()) STREAMVEC_CHECK_EQ(static_cast<size_t>(*count), samples.size());
}

}  // namespace

FuzzStart fuzz_start() {
  FuzzStart start;
  for (const ReplaySelector selector : {ReplaySelector::kUniform, ReplaySelector::kPrioritised}) {
    const auto table = ReplayTable::create(options_of(selector)).value();
    start.seeds.push_back(bytes_of(table->snapshot()));
    for (int i = 0; i < 4; ++i) {
      auto item = std::make_shared<ReplayItem>();
      item->chunk = {.slots = {1, 2, 3, i}, .sentence_ends = {2, 4}};
      item->record = static_cast<uint64_t>(i / 2);
      item->t = 10.0 * i;
      STREAMVEC_CHECK(table->insert(item, Deadline::after(std::chrono::seconds(1))).ok());
    }
    sample_some(*table);
    start.seeds.push_back(bytes_of(table->snapshot()));
  }
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const Result<ReplaySnapshot> snapshot = read_replay({reinterpret_cast<const char*>(data), size});
  if (!snapshot.ok()) {
    STREAMVEC_CHECK(snapshot.status().code() == Code::kDataLoss);
    return 0;
  }
  const std::string written = bytes_of(*snapshot);
  const Result<ReplaySnapshot> again = read_replay(written);
  STREAMVEC_CHECK(again.ok() && bytes_of(*again) == written);
  for (const auto selector : {ReplaySelector::kInOrderOnce, ReplaySelector::kUniform, ReplaySelector::kPrioritised}) {
    const auto table = ReplayTable::create(options_of(selector)).value();
    STREAMVEC_CHECK(table->restore(*snapshot).ok());
    sample_some(*table);
    (void)table->erase_record(1);
  }
  return 0;
}
