#include "streamvec/serve/history_reader.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "streamvec/eval/gram.h"
#include "streamvec/eval/procrustes.h"
#include "streamvec/eval/set_file.h"
#include "streamvec/eval/shared_words.h"
#include "streamvec/kernel/top_k.h"
#include "streamvec/serve/file_sign.h"

namespace streamvec {
namespace {

constexpr int32_t kCompared = 10;  // neighbours that `overlap` looks at

int64_t bytes_of(const Matrix& rows) {
  return rows.rows() * rows.stride() * static_cast<int64_t>(sizeof(float));
}

std::vector<Neighbour> nearest(MatrixView<const float> unit, Slot slot, int32_t k) {
  std::vector<Hit> hits(static_cast<size_t>(k));
  const std::span<const int32_t> own(&slot, 1);
  top_k(unit, {unit.row(slot), 1, unit.cols, unit.stride}, std::span(&own, 1), k, hits);
  std::vector<Neighbour> found;
  for (const Hit& hit : hits)
    if (hit.row >= 0) found.push_back({hit.row, hit.score});
  return found;
}

void fill(Station& station, const Vocabulary& vocabulary, MatrixView<const float> unit, Slot slot, int32_t k) {
  station.count = vocabulary.count(slot);
  station.neighbours = nearest(unit, slot, std::max(k, kCompared));
  for (const Neighbour& one : station.neighbours) station.words.emplace_back(vocabulary.word(one.slot));
}

double jaccard(const Station& a, const Station& b) {
  const auto ten = [](const Station& station) {
    return std::set<std::string>(
        station.words.begin(), station.words.begin() + std::min<std::ptrdiff_t>(kCompared, std::ssize(station.words)));
  };
  const std::set<std::string> x = ten(a), y = ten(b);
  size_t common = 0;
  for (const std::string& word : x) common += y.count(word);
  const size_t all = x.size() + y.size() - common;
  return all > 0 ? static_cast<double>(common) / static_cast<double>(all) : 0;
}

// Of each word of `from`, by slot, the cosine to the same word of `onto`, as compare_words() finds it.
Result<std::vector<float>> aligned_cosines(const Snapshot& from, const Snapshot& onto) {
  const DriftOptions options;
  std::vector<float> cosines(static_cast<size_t>(from.vocabulary.size()));
  STREAMVEC_ASSIGN_OR_RETURN(const SharedWords shared, share_words(from, onto, 0, options.words_max));
  if (shared.size() == 0) return cosines;
  STREAMVEC_ASSIGN_OR_RETURN(const Alignment alignment,
                             align_on_stable(shared.old_rows.view(), shared.new_rows.view(), options.align));
  STREAMVEC_ASSIGN_OR_RETURN(Matrix turned, shared.old_rows.copy());
  multiply(shared.old_rows.view(), alignment.rotation, turned.view());
  for (int64_t i = 0; i < shared.size(); ++i)
    cosines[static_cast<size_t>(shared.words[static_cast<size_t>(i)].old_slot)] =
        std::inner_product(turned.row(i), turned.row(i) + turned.cols(), shared.new_rows.row(i), 0.0f);
  return cosines;
}

// Whole vectors with length 1, where the search rows of a model are none: its history knows of no common part, and like
// is compared with like.
Result<Matrix> rows_if_parted(const Snapshot& snapshot) {
  if (snapshot.generator == nullptr || snapshot.generator->common_part().empty()) return Matrix();
  return unit_rows(snapshot.input.view());
}

}  // namespace

std::shared_ptr<HistoryReader::Kept> HistoryReader::load(const HistoryEntry& entry) {
  const std::string sign = sign_of_file(entry.path);
  if (sign.empty()) return nullptr;
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->sign == sign; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front();
  }
  auto snapshot = History::load(entry);
  if (!snapshot.ok()) return nullptr;
  auto unit = unit_rows(snapshot->input.view());
  if (!unit.ok()) return nullptr;
  snapshot->input = std::move(*unit);
  kept_.push_front(std::make_shared<Kept>(Kept{sign, std::move(*snapshot), {}, {}}));
  const std::shared_ptr<Kept> loaded = kept_.front();
  int64_t bytes = 0;
  for (auto at = kept_.begin(); at != kept_.end();) {
    bytes += bytes_of((*at)->snapshot.input);
    at = bytes > options_.bytes_max && at != kept_.begin() ? kept_.erase(at) : std::next(at);
  }
  return loaded;
}

Result<double> HistoryReader::cosine(Kept& from, Slot slot, const std::string& sign, const Snapshot& onto) {
  if (from.sign == sign) return 1;
  if (from.compared != sign) {
    STREAMVEC_ASSIGN_OR_RETURN(from.cosines_to_that, aligned_cosines(from.snapshot, onto));
    from.compared = sign;
  }
  return double{from.cosines_to_that[static_cast<size_t>(slot)]};
}

Result<std::vector<Station>> HistoryReader::path(const ServedModel& model, const std::string& word, int32_t k) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<HistoryEntry> entries, History(directory_).list());
  std::vector<Station> path;
  std::shared_ptr<Kept> newest;
  for (auto entry = entries.rbegin(); entry != entries.rend() && newest == nullptr; ++entry) newest = load(*entry);
  const Slot newest_slot = newest == nullptr ? kNoSlot : find_word(newest->snapshot.vocabulary, word);
  bool known = false;
  for (const HistoryEntry& entry : entries) {
    const std::shared_ptr<Kept> kept = load(entry);
    if (kept == nullptr || kept->snapshot.dim() != newest->snapshot.dim())
      continue;  // another dim than now: from before an import
    Station station;
    station.when = entry.moment;
    if (const Slot slot = find_word(kept->snapshot.vocabulary, word); slot != kNoSlot) {
      fill(station, kept->snapshot.vocabulary, kept->snapshot.input.view(), slot, k);
      STREAMVEC_ASSIGN_OR_RETURN(station.cosine, cosine(*kept, slot, newest->sign, newest->snapshot));
      known = true;
    }
    path.push_back(std::move(station));
  }
  const bool newer = path.empty() || model.snapshot().step > path.back().when.step;
  if (const Slot slot = find_word(model.vocabulary(), word); slot != kNoSlot && newer) {
    Station station;
    station.when = {model.snapshot().step, 0, model.vocabulary().tokens()};
    STREAMVEC_ASSIGN_OR_RETURN(const Matrix whole, rows_if_parted(model.snapshot()));
    const MatrixView<const float> unit = whole.rows() > 0 ? whole.view() : model.search_rows();
    fill(station, model.vocabulary(), unit, slot, k);
    station.cosine = 1;
    if (newest_slot != kNoSlot && newest->snapshot.dim() == model.dim()) {
      const std::string sign = "model " + std::to_string(model.number());
      STREAMVEC_ASSIGN_OR_RETURN(station.cosine, cosine(*newest, newest_slot, sign, model.snapshot()));
    }
    path.push_back(std::move(station));
    known = true;
  }
  if (!known) return error(Code::kNotFound, "\"", word, "\" is in no snapshot of the model");
  for (Station& station : path)
    if (station.count > 0) station.overlap = jaccard(station, path.back());
  for (Station& station : path)
    if (std::ssize(station.neighbours) > k) {
      station.neighbours.resize(static_cast<size_t>(k));
      station.words.resize(static_cast<size_t>(k));
    }
  return path;
}

Result<DriftAnswer> HistoryReader::drift(const ServedModel& model, const std::string& from, const std::string& to,
                                         int64_t count) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<Moment> moments,
                             list_moments(directory_, model.snapshot().step, model.vocabulary().tokens()));
  MomentRange range{0, moments.size() - 1};
  // The newest moment of the history has halves that tell drift from chance; the served model, newer, has none.
  if (!moments.back().entry && moments.size() > 2) --range.to;
  if (!to.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(range.to, find_moment(moments, "to", to));
  }
  range.from = first_settled(moments, range.to);
  if (!from.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(range.from, find_moment(moments, "from", from));
  }
  STREAMVEC_RETURN_IF_ERROR(check_range(moments, range, "from and to"));
  const Moment &then = moments[range.from], &now = moments[range.to];
  const std::string key = sign_of_file(then.entry->path) + " " +
                          (now.entry ? sign_of_file(now.entry->path) : std::to_string(model.number())) + " " +
                          std::to_string(count);
  if (const auto known = reports_.find(key); known != reports_.end()) return known->second;
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot old_snapshot, History::load(*then.entry));
  std::optional<Snapshot> new_snapshot;
  if (now.entry) {
    STREAMVEC_ASSIGN_OR_RETURN(new_snapshot, History::load(*now.entry));
  }
  StreamState old_state{old_snapshot}, new_state{new_snapshot ? *new_snapshot : model.snapshot()};
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, History(directory_).load_halves(then.when.step, now.when.step));
  if (halves) {
    old_state.half_a = &halves->old_a, old_state.half_b = &halves->old_b;
    new_state.half_a = &halves->new_a, new_state.half_b = &halves->new_b;
  }
  DriftOptions options;
  options.listed_max = count;
  DriftAnswer answer{then.when, now.when, {}};
  STREAMVEC_ASSIGN_OR_RETURN(answer.report, find_drift(old_state, new_state, options));
  if (std::ssize(reports_) >= options_.reports_max) reports_.clear();
  return reports_[key] = std::move(answer);
}

}  // namespace streamvec
