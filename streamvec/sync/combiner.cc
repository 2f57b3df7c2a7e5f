#include "streamvec/sync/combiner.h"

#include "streamvec/kernel/logistic_rows.h"
#include "streamvec/kernel/row_codec.h"

namespace streamvec {
namespace {

// to = Adasum(a, to)
void adasum(const float* a, int32_t dim, float* to) {
  const float shared = dot(a, to, dim), a_square = dot(a, a, dim), to_square = dot(to, to, dim);
  // A row that did not move has no direction: the other's change stands.
  const float of_a = a_square > 0 ? 1 - 0.5f * shared / a_square : 1;
  const float of_to = to_square > 0 ? 1 - 0.5f * shared / to_square : 1;
  blend(a, of_a, to, of_to, dim, to);
}

}  // namespace

Result<Combine> parse_combine(std::string_view name) {
  if (name == "sum") return Combine::kSum;
  if (name == "mean") return Combine::kMean;
  if (name == "adasum") return Combine::kAdasum;
  return error(Code::kInvalidArgument, "no combiner is called '", name, "'; try adasum, mean or sum");
}

void combine_rows(Combine rule, std::span<float* const> changes, int32_t dim) {
  if (rule == Combine::kAdasum) {
    for (size_t step = 1; step < changes.size(); step *= 2)
      for (size_t i = 0; i + step < changes.size(); i += 2 * step) adasum(changes[i + step], dim, changes[i]);
    return;
  }
  for (size_t i = 1; i < changes.size(); ++i) blend(changes[i], 1, changes[0], 1, dim, changes[0]);
  if (rule == Combine::kMean && changes.size() > 1) {
    const float share = 1 / static_cast<float>(changes.size());
    blend(changes[0], share, changes[0], 0, dim, changes[0]);
  }
}

void combine_late(Combine rule, const float* missed, int32_t dim, float* incoming) {
  switch (rule) {
    case Combine::kSum:
      return blend(missed, 1, incoming, 1, dim, incoming);
    case Combine::kMean:
      return blend(missed, 0.5f, incoming, 0.5f, dim, incoming);
    case Combine::kAdasum:
      return adasum(missed, dim, incoming);
  }
}

}  // namespace streamvec
