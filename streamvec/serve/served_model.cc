#include "streamvec/serve/served_model.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "streamvec/core/clock.h"
#include "streamvec/eval/set_file.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {
namespace {}  // namespace

Result<std::shared_ptr<const ServedModel>> ServedModel::make(std::shared_ptr<const Snapshot> snapshot, int64_t number) {
  auto parts = std::make_shared<Parts>();
  STREAMVEC_ASSIGN_OR_RETURN(parts->space, SearchSpace::make(*snapshot));
  STREAMVEC_ASSIGN_OR_RETURN(parts->rows, parts->space.search_rows(*snapshot));
  STREAMVEC_ASSIGN_OR_RETURN(parts->search, RowSearch::make(parts->rows.view()));
  const Vocabulary& words = snapshot->vocabulary;
  parts->by_bytes.resize(static_cast<size_t>(words.size()));
  std::iota(parts->by_bytes.begin(), parts->by_bytes.end(), 0);
  parts->by_count = parts->by_bytes;
  std::sort(parts->by_bytes.begin(), parts->by_bytes.end(),
            [&](Slot a, Slot b) { return words.word(a) < words.word(b); });
  std::stable_sort(parts->by_count.begin(), parts->by_count.end(),
                   [&](Slot a, Slot b) { return words.count(a) > words.count(b); });
  return std::shared_ptr<const ServedModel>(new ServedModel(std::move(snapshot), std::move(parts), number, unix_now()));
}

ServedModel::ServedModel(std::shared_ptr<const Snapshot> snapshot, std::shared_ptr<const Parts> parts, int64_t number,
                         double time_s)
    : snapshot_(std::move(snapshot)), parts_(std::move(parts)), number_(number), time_s_(time_s) {}

std::shared_ptr<const ServedModel> ServedModel::with_index(std::shared_ptr<const HnswIndex> index) const {
  std::shared_ptr<ServedModel> indexed(new ServedModel(snapshot_, parts_, number_, time_s_));
  indexed->index_ = std::move(index);
  return indexed;
}

std::vector<std::vector<Neighbour>> ServedModel::search(std::span<const SearchRequest> requests) const {
  std::vector<std::vector<Neighbour>> found(requests.size());
  for (size_t i = 0; i < requests.size() && index_ != nullptr; ++i)
    found[i] = index_->search(requests[i].unit, requests[i].excluded, requests[i].k);
  if (index_ != nullptr) return found;
  int32_t k = 0;
  for (const SearchRequest& request : requests) k = std::max(k, request.k);
  k = static_cast<int32_t>(std::min<int64_t>(k, parts_->rows.rows()));
  if (k == 0) return found;
  std::vector<float> queries;
  std::vector<std::span<const int32_t>> excluded;
  for (const SearchRequest& request : requests) {
    queries.insert(queries.end(), request.unit.begin(), request.unit.end());
    excluded.push_back(request.excluded);
  }
  std::vector<Hit> hits(requests.size() * static_cast<size_t>(k));
  parts_->search->top_k({queries.data(), static_cast<int64_t>(requests.size()), dim(), dim()}, excluded, k, hits);
  for (size_t i = 0; i < requests.size(); ++i)
    for (const Hit& hit :
         std::span(hits).subspan(i * static_cast<size_t>(k), static_cast<size_t>(std::min(k, requests[i].k))))
      if (hit.row >= 0) found[i].push_back({hit.row, hit.score});
  return found;
}

std::vector<Slot> ServedModel::begin_with(std::string_view prefix, int64_t count) const {
  const Vocabulary& words = vocabulary();
  const auto begin = std::lower_bound(parts_->by_bytes.begin(), parts_->by_bytes.end(), prefix,
                                      [&](Slot slot, std::string_view text) { return words.word(slot) < text; });
  const auto end = std::partition_point(begin, parts_->by_bytes.end(),
                                        [&](Slot slot) { return words.word(slot).starts_with(prefix); });
  std::vector<Slot> found(static_cast<size_t>(std::min<int64_t>(count, end - begin)));
  std::partial_sort_copy(begin, end, found.begin(), found.end(), [&](Slot a, Slot b) {
    return words.count(a) != words.count(b) ? words.count(a) > words.count(b) : words.word(a) < words.word(b);
  });
  return found;
}

std::vector<Slot> ServedModel::words_with(std::string_view prefix, int64_t count) const {
  if (prefix.empty()) {
    const auto first = most_frequent(count);
    return {first.begin(), first.end()};
  }
  std::vector<Slot> found = begin_with(prefix, count);
  return found.empty() ? begin_with(folded_word(prefix), count) : found;
}

std::span<const Slot> ServedModel::most_frequent(int64_t count) const {
  return std::span(parts_->by_count).first(static_cast<size_t>(std::min<int64_t>(count, vocabulary().size())));
}

}  // namespace streamvec
