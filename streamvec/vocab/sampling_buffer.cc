#include "streamvec/vocab/sampling_buffer.h"

#include <cmath>
#include <utility>

#include "streamvec/vocab/state_bytes.h"

namespace streamvec {

namespace {

// The sum of term(0) to term(count - 1). Four sums side by side: one alone waits for each addition to end.
template <typename Term>
double sum_of(size_t count, const Term& term) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += term(i + k);
  for (; i < count; ++i) sums[0] += term(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

double total_variation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < b.size()) std::swap(a, b);
  const double sum_a = sum_of(a.size(), [&](size_t i) { return a[i]; });
  const double sum_b = sum_of(b.size(), [&](size_t i) { return b[i]; });
  if (!(sum_a > 0 && sum_b > 0)) return sum_a > 0 || sum_b > 0 ? 1 : 0;
  const double part_a = 1 / sum_a, part_b = 1 / sum_b;
  const double apart = sum_of(b.size(), [&](size_t i) { return std::abs(a[i] * part_a - b[i] * part_b); });
  const double beyond = sum_of(a.size() - b.size(), [&](size_t i) { return a[b.size() + i] * part_a; });
  return (apart + beyond) / 2;
}

std::shared_ptr<const SamplingTables> SamplingTablesBuffer::tables() const {
  const std::lock_guard lock(mutex_);
  return tables_;
}

// Of the counts there were then, this share is left; what is new is at least what total variation can have become,
// but for words that changed places.
bool SamplingTablesBuffer::may_have_changed(const StreamVocabulary& vocabulary) const {
  if (built_of_.empty()) return true;
  const double left = checked_.sum * vocabulary.weight_of_age(checked_.time);
  if (!(left >= (1 - options_.change_max) * vocabulary.weights_sum())) return true;
  const auto admitted = static_cast<double>(vocabulary.statistics().admitted - checked_.admitted);
  return admitted > options_.change_max * vocabulary.size();
}

bool SamplingTablesBuffer::stage(const StreamVocabulary& vocabulary) {
  if (vocabulary.size() == 0 || !may_have_changed(vocabulary)) return false;
  checked_ = {vocabulary.weights_sum(), vocabulary.now(), vocabulary.statistics().admitted};
  std::vector<double> counts = vocabulary.weights();
  if (!built_of_.empty() && total_variation(built_of_, counts) < options_.change_max) return false;
  built_of_ = counts;
  const std::lock_guard lock(mutex_);
  staged_ = std::move(counts);
  ++staged_number_;
  return true;
}

void SamplingTablesBuffer::build() {
  std::vector<double> counts;
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    counts.swap(staged_);
    number = staged_number_;
  }
  if (!counts.empty()) put(counts, number);
}

void SamplingTablesBuffer::put(const std::vector<double>& counts, int64_t number) {
  auto built = std::make_shared<const SamplingTables>(counts, options_.sample);
  const std::lock_guard lock(mutex_);
  if (number < tables_number_) return;
  tables_ = std::move(built);
  tables_number_ = number;
}

std::string SamplingTablesBuffer::save() const {
  StateWriter out;
  out.put(checked_.sum);
  out.put(checked_.time);
  out.put(checked_.admitted);
  out.put(static_cast<uint64_t>(built_of_.size()));
  out.put_all(std::span<const double>(built_of_));
  return out.take();
}

Status SamplingTablesBuffer::restore(std::string_view bytes) {
  StateReader in(bytes);
  Mark checked;
  checked.sum = in.get<double>();
  checked.time = in.get<double>();
  checked.admitted = in.get<int64_t>();
  std::vector<double> counts(static_cast<size_t>(in.get_count(sizeof(double))));
  in.get_all(std::span<double>(counts));
  bool possible = in.ok() && in.at_end() && std::isfinite(checked.sum) && std::isfinite(checked.time);
  for (const double count : counts) possible = possible && count >= 0 && std::isfinite(count);
  if (!possible)
    return error(Code::kDataLoss, "the saved sampling counts are damaged at byte ", in.offset(),
                 "; try an older checkpoint");
  checked_ = checked;
  built_of_ = counts;
  if (!counts.empty()) put(counts, staged_number_);
  return {};
}

}  // namespace streamvec
