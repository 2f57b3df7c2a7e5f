#include "streamvec/serve/history_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "streamvec/eval/set_file.h"
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

double turned_cosine(MatrixView<const float> from, Slot slot, const Eigen::MatrixXd* rotation,
                     MatrixView<const float> onto, Slot onto_slot) {
  Eigen::RowVectorXd a(from.cols), b(onto.cols);
  for (int64_t i = 0; i < from.cols; ++i) a[i] = from.row(slot)[i];
  for (int64_t i = 0; i < onto.cols; ++i) b[i] = onto.row(onto_slot)[i];
  if (rotation != nullptr) a = a * *rotation;
  return a.dot(b);
}

// The rotation between rows of words that both have, of the first's most frequent ones.
std::optional<Eigen::MatrixXd> rotation_between(const Vocabulary& words, MatrixView<const float> unit,
                                                const Vocabulary& others, MatrixView<const float> other_unit) {
  constexpr int64_t kAnchors = 3'000;
  std::vector<Slot> own, partners;
  for (Slot slot = 0; slot < words.size() && std::ssize(own) < kAnchors; ++slot)
    if (const Slot partner = others.find(words.word(slot)); partner != kNoSlot) {
      own.push_back(slot);
      partners.push_back(partner);
    }
  if (own.empty() || unit.cols != other_unit.cols) return std::nullopt;
  const auto a = unit_rows(unit, own), b = unit_rows(other_unit, partners);
  if (!a.ok() || !b.ok()) return std::nullopt;
  const auto aligned = align_on_stable(a->view(), b->view(), {});
  if (!aligned.ok()) return std::nullopt;
  return aligned->rotation;
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
  kept_.push_front(std::make_shared<Kept>(Kept{sign, std::move(snapshot->vocabulary), std::move(*unit), {}}));
  const std::shared_ptr<Kept> loaded = kept_.front();
  int64_t bytes = 0;
  for (auto at = kept_.begin(); at != kept_.end();) {
    bytes += bytes_of((*at)->unit);
    at = bytes > options_.bytes_max && at != kept_.begin() ? kept_.erase(at) : std::next(at);
  }
  return loaded;
}

const Eigen::MatrixXd* HistoryReader::rotation(Kept& from, const Kept& onto) {
  if (from.sign == onto.sign) return nullptr;
  const auto known = from.rotations.find(onto.sign);
  if (known != from.rotations.end()) return &known->second;
  auto found = rotation_between(from.vocabulary, from.unit.view(), onto.vocabulary, onto.unit.view());
  if (!found) return nullptr;
  from.rotations.clear();  // one reference is enough
  return &from.rotations.emplace(onto.sign, std::move(*found)).first->second;
}

Result<std::vector<Station>> HistoryReader::path(const ServedModel& model, const std::string& word, int32_t k) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<HistoryEntry> entries, History(directory_).list());
  std::vector<Station> path;
  std::shared_ptr<Kept> newest;
  for (auto entry = entries.rbegin(); entry != entries.rend() && newest == nullptr; ++entry) newest = load(*entry);
  const Slot newest_slot = newest == nullptr ? kNoSlot : find_word(newest->vocabulary, word);
  bool known = false;
  for (const HistoryEntry& entry : entries) {
    const std::shared_ptr<Kept> kept = load(entry);
    if (kept == nullptr || kept->unit.cols() != newest->unit.cols())
      continue;  // another dim than now: from before an import
    Station station;
    station.when = entry.moment;
    if (const Slot slot = find_word(kept->vocabulary, word); slot != kNoSlot) {
      fill(station, kept->vocabulary, kept->unit.view(), slot, k);
      if (newest_slot != kNoSlot)
        station.cosine =
            turned_cosine(kept->unit.view(), slot, rotation(*kept, *newest), newest->unit.view(), newest_slot);
      known = true;
    }
    path.push_back(std::move(station));
  }
  // The served model is compared as it is: it has gone on from the newest moment, and hardly turned since.
  const bool newer = path.empty() || model.snapshot().step > path.back().when.step;
  if (const Slot slot = find_word(model.vocabulary(), word); slot != kNoSlot && newer) {
    Station station;
    station.when = {model.snapshot().step, 0, model.vocabulary().tokens()};
    STREAMVEC_ASSIGN_OR_RETURN(const Matrix whole, rows_if_parted(model.snapshot()));
    const MatrixView<const float> unit = whole.rows() > 0 ? whole.view() : model.search_rows();
    fill(station, model.vocabulary(), unit, slot, k);
    station.cosine = 1;
    if (newest_slot != kNoSlot && newest->unit.cols() == model.dim())
      station.cosine = turned_cosine(unit, slot, nullptr, newest->unit.view(), newest_slot);
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
