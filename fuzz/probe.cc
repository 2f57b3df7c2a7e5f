// Saved counts of probe words (eval/probe_sppmi.h): what restores saves to the same bytes and goes on counting.
#include "fuzz/fuzz.h"
#include "streamvec/eval/probe_sppmi.h"

namespace streamvec {
namespace {

constexpr int64_t kSlots = 12;

ProbeOptions options() {
  ProbeOptions options;
  options.words_max = 6;
  options.count_min = 1;
  options.chunks_every = 1;
  options.half_life = 100;
  return options;
}

void go_on(ProbeSppmi& probe) {
  const std::vector<double> counts(kSlots, 9);
  const Subsampling subsampling(std::vector<double>(kSlots, 9.0), 1);
  probe.add({.slots = {1, 2, 3, 11, 2, 1}, .sentence_ends = {6}}, 500, subsampling);
  probe.follow(counts);
  probe.forget(std::vector<Slot>{2});
}

}  // namespace

FuzzStart fuzz_start() {
  ProbeSppmi probe(options());
  FuzzStart start{.seeds = {probe.save()}};
  for (int times = 0; times < 2; ++times) {
    go_on(probe);
    start.seeds.push_back(probe.save());
  }
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Result<ProbeSppmi> probe = ProbeSppmi::restore(options(), bytes, kSlots);
  if (!probe.ok()) {
    STREAMVEC_CHECK(probe.status().code() == Code::kDataLoss);
    return 0;
  }
  STREAMVEC_CHECK(probe->save() == bytes);
  go_on(*probe);
  return 0;
}
