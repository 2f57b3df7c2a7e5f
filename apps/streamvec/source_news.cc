#include "apps/streamvec/source_news.h"

#include <algorithm>

#include "streamvec/source/location.h"

namespace streamvec::cli {

std::vector<std::string> SourceNews::tell(std::span<const SourceMetrics> sources) {
  std::vector<std::string> lines;
  told_.resize(std::max(told_.size(), sources.size()));
  // The run ends with the error of the first then.
  const bool over =
      std::all_of(sources.begin(), sources.end(), [](const SourceMetrics& source) { return source.state == "failed"; });
  for (size_t i = 0; i < sources.size(); ++i) {
    const SourceMetrics& source = sources[i];
    Told& told = told_[i];
    if (source.state == told.state) continue;
    const std::string fault(without_name(source.last_error, source.name));
    if (source.state == "failed") {
      if (!over) lines.push_back(source.name + " is given up: " + fault);
    } else if (source.state == "waiting" && ++told.times <= kTimesMax) {
      lines.push_back(source.name + ": " + fault + "; it is tried again" +
                      (told.times == kTimesMax ? ", and not spoken of until the end" : ""));
    } else if (told.state == "waiting" && told.times < kTimesMax) {
      lines.push_back(source.name + " can be read again");
    }
    told.state = source.state;
  }
  return lines;
}

}  // namespace streamvec::cli
