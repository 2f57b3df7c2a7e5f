// Snowball stemming: forms of a word become one ("running" -> "run").
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"

struct sb_stemmer;

namespace streamvec {

// Thread-safe: the library's own state is guarded. Movable while nobody calls.
class Stemmer {
 public:
  // `language` is Snowball's English name for it or an ISO 639 code ("english", "en"), in any case.
  // kInvalidArgument, naming the known ones, when there is none.
  static Result<Stemmer> open(const std::string& language);

  // Never empty for a word that is not. Expects lower-case UTF-8; other text comes back as the rules leave it.
  std::string stem(std::string_view word) const;

 private:
  struct Delete {
    void operator()(sb_stemmer* stemmer) const;
  };
  Stemmer() = default;

  std::unique_ptr<sb_stemmer, Delete> stemmer_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

// The names that open() knows, joined by spaces.
std::string stemmer_languages();

}  // namespace streamvec
