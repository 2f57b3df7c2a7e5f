// Saving a probe's counts and going on from them.
#include "streamvec/eval/probe_sppmi.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr uint32_t kMagic = 0x42525053;  // "SPRB"
constexpr uint32_t kVersion = 1;

bool sound(const std::vector<double>& values) {
  for (const double value : values)
    if (!(value >= 0 && value <= 1e300)) return false;
  return true;
}

Status damaged(size_t offset) {
  return error(Code::kDataLoss, "the saved counts of probe words are damaged or cut short at byte ", offset);
}

bool rising(std::span<const Slot> slots) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i] < 0 || (i > 0 && slots[i] <= slots[i - 1])) return false;
  return true;
}

}  // namespace

std::string ProbeSppmi::save() const {
  StateWriter out;
  out.put(kMagic);
  out.put(kVersion);
  out.put(chunks_);
  out.put(decay_.landmark());
  out.put(static_cast<uint64_t>(counts_.slots.size()));
  out.put_all(std::span<const Slot>(counts_.slots));
  for (const Half& half : counts_.halves) {
    out.put(half.tokens_sum);
    out.put_all(std::span<const double>(half.tokens));
    out.put_all(std::span<const double>(half.marginals));
    out.put_all(std::span<const double>(half.pairs));
  }
  return out.take();
}

Result<ProbeSppmi> ProbeSppmi::restore(const ProbeOptions& options, std::string_view bytes, int64_t vocabulary_size) {
  StateReader in(bytes);
  ProbeSppmi probe(options);
  if (in.get<uint32_t>() != kMagic || in.get<uint32_t>() != kVersion) return damaged(0);
  probe.chunks_ = in.get<int64_t>();
  probe.decay_.set_landmark(in.get<int64_t>());
  std::vector<Slot> slots(static_cast<size_t>(in.get_count(sizeof(Slot))));
  in.get_all(std::span<Slot>(slots));
  // Each half has a triangle of pairs: the bytes must be there before memory is taken for it.
  const size_t words = slots.size(), values = words * (words + 1) / 2 + 2 * words + 1;
  if (!in.ok() || !rising(slots) || (words > 0 && slots.back() >= vocabulary_size) ||
      bytes.size() - in.offset() != 2 * values * sizeof(double))
    return damaged(in.offset());
  probe.set_words(slots);
  for (Half& half : probe.counts_.halves) {
    half.tokens_sum = in.get<double>();
    in.get_all(std::span<double>(half.tokens));
    in.get_all(std::span<double>(half.marginals));
    if (!slots.empty()) in.get_all(std::span<double>(half.pairs));
    if (!in.ok() || !sound({half.tokens_sum}) || !sound(half.tokens) || !sound(half.marginals) || !sound(half.pairs))
      return damaged(in.offset());
  }
  return probe;
}

}  // namespace streamvec
