#include "streamvec/eval/moments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "streamvec/source/time_text.h"

namespace streamvec {

Result<std::vector<Moment>> list_moments(const std::string& directory, int64_t model_step, int64_t model_tokens,
                                         std::vector<std::string>* notes) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, History(directory).list(notes));
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, History(directory).list_halves());
  std::vector<Moment> moments;
  for (const HistoryEntry& entry : entries) {
    const auto same = [&](const HistoryHalves& pair) { return pair.a.moment.step == entry.moment.step; };
    moments.push_back({entry.moment, entry, std::any_of(halves.begin(), halves.end(), same)});
  }
  if (moments.empty() || model_step > moments.back().when.step)
    moments.push_back({{model_step, 0, model_tokens}, std::nullopt, false});
  if (moments.size() < 2)
    return error(Code::kFailedPrecondition, directory, "/history holds ", entries.size(), " earlier snapshot",
                 entries.size() == 1 ? "" : "s", ", drift needs one before the newest; train on for longer");
  return moments;
}

Result<size_t> find_moment(const std::vector<Moment>& moments, const std::string& name, const std::string& typed) {
  int64_t wanted = 0;
  const auto [end, failed] = std::from_chars(typed.data(), typed.data() + typed.size(), wanted);
  const bool is_step = failed == std::errc() && end == typed.data() + typed.size();
  if (!is_step) {
    const auto time = parse_time(typed);
    if (!time.ok())
      return error(Code::kInvalidArgument, name, " ", typed, ": neither a step nor a time; try a step such as ",
                   moments.front().when.step, " or a date such as 2024-05-01");
    wanted = *time;
  }
  const auto distance = [&](const Moment& moment) {
    return std::abs(static_cast<double>(is_step ? moment.when.step : moment.when.time_s) - static_cast<double>(wanted));
  };
  const auto nearest = std::min_element(moments.begin(), moments.end(),
                                        [&](const Moment& a, const Moment& b) { return distance(a) < distance(b); });
  return static_cast<size_t>(nearest - moments.begin());
}

size_t first_settled(const std::vector<Moment>& moments, size_t to) {
  for (const bool halves : {true, false})
    for (size_t i = 0; i < to; ++i)
      if (4 * moments[i].when.tokens >= moments[to].when.tokens && moments[i].halves >= halves) return i;
  return to > 0 ? to - 1 : 0;
}

Status check_range(const std::vector<Moment>& moments, const MomentRange& range, const std::string& names) {
  if (range.from < range.to) return {};
  return error(Code::kInvalidArgument, names, " lead to step ", moments[range.from].when.step, " and step ",
               moments[range.to].when.step, "; the first must be the earlier one (the history has ",
               moments.front().when.step, " to ", moments.back().when.step, ")");
}

}  // namespace streamvec
