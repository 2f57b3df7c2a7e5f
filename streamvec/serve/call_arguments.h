// What a call was asked with: the query of a GET or the JSON object of a POST, read by the same names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/eval/neighbours.h"
#include "streamvec/serve/http_message.h"

namespace streamvec {

// All errors are kInvalidArgument and name the parameter.
class CallArguments {
 public:
  // A POST needs a JSON object as its body; other methods take what the address has, where a name may come again.
  static Result<CallArguments> of(const HttpRequest& request);

  bool given(const std::string& name) const { return values_.contains(name); }
  Result<std::string> text(const std::string& name) const;  // must be given
  Result<std::string> text_or(const std::string& name, const std::string& otherwise) const;
  // Of a stream: a step or a time, in a POST a step may be a number; "" when it is not given.
  Result<std::string> moment(const std::string& name) const;
  Result<std::vector<std::string>> texts(const std::string& name) const;  // one or several
  Result<int64_t> integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max) const;
  Result<std::vector<float>> numbers(const std::string& name) const;
  // Words, each alone or as {"word","weight"}; in an address "word:weight".
  Result<std::vector<WeightedWord>> weighted_words(const std::string& name) const;
  Result<std::vector<std::pair<std::string, std::string>>> pairs(const std::string& name) const;

  // An error when a name was given that is not among these.
  Status only(const std::set<std::string>& names) const;

 private:
  nlohmann::json values_ = nlohmann::json::object();  // of an address: arrays of strings
  bool typed_ = false;                                // JSON: numbers are numbers
};

}  // namespace streamvec
