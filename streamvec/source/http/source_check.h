// What a crawl of an address would read: for `streamvec source check URL`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/source/http/crawl_source.h"

namespace streamvec {

struct SourceCheck {
  std::string url;             // in normal form
  CrawlStatistics statistics;  // kind, title, robots verdict, pages found, last error, ...
  std::vector<Document> documents;
  std::vector<std::string> notes;
  Status status;  // why it ended before `documents` were enough; ok when they are or there are no more
};

struct SourceCheckOptions {
  int64_t documents = 3;  // read that many
  CrawlSource::Options crawl;
};

// Reads the address as training would, politely, until there are enough documents or the deadline passes.
// kInvalidArgument when it is no URL that can be read; anything else is in the answer.
Result<SourceCheck> check_source(const std::string& url, const SourceCheckOptions& options, Deadline deadline);

}  // namespace streamvec
