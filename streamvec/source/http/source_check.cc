#include "streamvec/source/http/source_check.h"

namespace streamvec {

Result<SourceCheck> check_source(const std::string& url, const SourceCheckOptions& options, Deadline deadline) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<CrawlSource> source, CrawlSource::open(url, options.crawl));
  SourceCheck check;
  check.url = source->name();
  while (static_cast<int64_t>(check.documents.size()) < options.documents) {
    const int64_t wanted = options.documents - static_cast<int64_t>(check.documents.size());
    const Result<int64_t> count = source->read(wanted, deadline, check.documents);
    check.status = count.status();
    if (!count.ok() || *count == 0) break;
  }
  check.statistics = source->statistics();
  check.notes = source->notes();
  return check;
}

}  // namespace streamvec
