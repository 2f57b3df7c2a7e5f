#include "apps/streamvec/source_news.h"

#include "streamvec/source/location.h"

namespace streamvec::cli {

std::vector<std::string> SourceNews::tell(std::span<const SourceMetrics> sources) {
  std::vector<std::string> lines;
  for (const SourceMetrics& source : sources) {
    Told& told = told_[source.name];
    if (source.state == told.state) continue;
    const std::string fault(without_name(source.last_error, source.name));
    if (source.state == "failed") {
      lines.push_back(source.name + " is given up: " + fault);
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
