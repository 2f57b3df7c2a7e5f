#include "streamvec/ingest/document_filter.h"

#include <utility>

namespace streamvec {

Result<DocumentFilter> DocumentFilter::create(const Options& options) {
  STREAMVEC_ASSIGN_OR_RETURN(LanguageFilter languages, LanguageFilter::create({.wanted = options.languages}));
  DocumentFilter filter(std::move(languages), {.seed = options.seed});
  if (options.drop_duplicates) {
    STREAMVEC_ASSIGN_OR_RETURN(filter.recent_, NearDuplicates::create(filter.recent_options_));
  }
  return filter;
}

Status DocumentFilter::restore(std::string_view bytes) {
  if (!recent_ || bytes.empty()) return {};
  STREAMVEC_ASSIGN_OR_RETURN(recent_, NearDuplicates::restore(recent_options_, bytes));
  return {};
}

}  // namespace streamvec
