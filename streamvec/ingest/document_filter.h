// Which documents of a stream are wanted at all: those in the wanted languages that have not come by lately.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/text/language.h"
#include "streamvec/text/near_duplicates.h"

namespace streamvec {

class DocumentFilter {
 public:
  struct Options {
    bool drop_duplicates = false;
    std::vector<std::string> languages = {};  // codes as language.h has them; none: all
    uint64_t seed = 1;
  };
  // kInvalidArgument for a language nobody knows.
  static Result<DocumentFilter> create(const Options& options);

  bool language_wanted(std::string_view text) const { return languages_.passes(text); }  // thread-safe
  // True when a document nearly like this is remembered; else it is from now on.
  bool seen_before(std::span<const std::string_view> words) { return recent_ && recent_->seen_before(words); }

  // What is remembered of earlier documents, for checkpoints; "" when nothing is to be. restore() takes what another
  // setting saved, too: then there is nothing to go on with. kDataLoss for bytes that save() did not write.
  std::string save() const { return recent_ ? recent_->save() : ""; }
  Status restore(std::string_view bytes);

 private:
  DocumentFilter(LanguageFilter languages, NearDuplicates::Options recent_options)
      : languages_(std::move(languages)), recent_options_(recent_options) {}

  LanguageFilter languages_;
  NearDuplicates::Options recent_options_;
  std::optional<NearDuplicates> recent_;
};

}  // namespace streamvec
