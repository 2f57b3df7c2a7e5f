#include "streamvec/vocab/sampling_buffer.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "streamvec/vocab/state_bytes.h"

namespace streamvec {

// Paces go by counts, not by shares: where these have grown by a quarter, rows' steps are a ninth too long.
constexpr double kGrown = 1.25;

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
  const bool comparable = built_sum_ > 0 && std::ssize(built_of_) <= vocabulary.size();
  const double grown = vocabulary.weights_sum() / built_sum_;
  const bool paces_hold = !(options_.pace.pace_max > 1) || (grown < kGrown && grown > 1 / kGrown);
  if (comparable && paces_hold && vocabulary.share_change(built_of_, built_sum_) < options_.change_max) return false;
  std::vector<double> counts = vocabulary.weights();
  remember(counts);
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

void SamplingTablesBuffer::remember(const std::vector<double>& counts) {
  built_of_ = counts;
  built_sum_ = std::accumulate(counts.begin(), counts.end(), 0.0);
}

void SamplingTablesBuffer::put(const std::vector<double>& counts, int64_t number) {
  auto built = std::make_shared<const SamplingTables>(counts, options_.sample, options_.pace);
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
  remember(counts);
  if (!counts.empty()) put(counts, staged_number_);
  return {};
}

}  // namespace streamvec
