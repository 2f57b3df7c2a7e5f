#include "streamvec/serve/call_arguments.h"

#include <charconv>
#include <cmath>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using nlohmann::json;

Status wrong(const std::string& name, const char* wanted) {
  return error(Code::kInvalidArgument, name, " has to be ", wanted);
}

Status missing(const std::string& name) {
  return error(Code::kInvalidArgument, name, " is missing");
}

// The one value of a name; nullptr for several.
const json* single(const json& value, bool typed) {
  if (typed) return &value;
  return value.size() == 1 ? &value[0] : nullptr;
}

Result<WeightedWord> word_of(const std::string& name, const json& item, bool typed) {
  WeightedWord word;
  if (item.is_string()) {
    word.word = item.get<std::string>();
    // A weight is the number after the last colon; a word with a colon and no number is a word.
    const size_t colon = typed ? std::string::npos : word.word.rfind(':');
    if (colon == std::string::npos || colon == 0) return word;
    double weight = 0;
    const char* end = word.word.data() + word.word.size();
    const auto [stopped, failed] = std::from_chars(word.word.data() + colon + 1, end, weight);
    if (failed != std::errc() || stopped != end) return word;
    word.weight = weight;
    word.word.resize(colon);
    return word;
  }
  if (!item.is_object() || !item.contains("word") || !item["word"].is_string() ||
      (item.contains("weight") && !item["weight"].is_number()) || item.size() > 1 + item.count("weight"))
    return wrong(name, "a list of words, each a string or {\"word\":...,\"weight\":...}");
  word.word = item["word"].get<std::string>();
  word.weight = item.value("weight", 1.0);
  return word;
}

}  // namespace

Result<CallArguments> CallArguments::of(const HttpRequest& request) {
  CallArguments arguments;
  for (const auto& [name, value] : request.query) {
    if (request.method == "POST")
      return error(Code::kInvalidArgument, "a POST takes its parameters from its body, not from the address");
    arguments.values_[name].push_back(value);
  }
  if (request.method != "POST") return arguments;
  arguments.typed_ = true;
  arguments.values_ = parse_json(request.body);
  if (!arguments.values_.is_object())
    return error(Code::kInvalidArgument, "the body has to be one JSON object, such as {\"word\":\"king\"}");
  return arguments;
}

Result<std::string> CallArguments::text(const std::string& name) const {
  if (!given(name)) return missing(name);
  const json* value = single(values_[name], typed_);
  if (value == nullptr || !value->is_string()) return wrong(name, "one text");
  return value->get<std::string>();
}

Result<std::string> CallArguments::text_or(const std::string& name, const std::string& otherwise) const {
  return given(name) ? text(name) : Result<std::string>(otherwise);
}

Result<std::string> CallArguments::moment(const std::string& name) const {
  if (typed_ && given(name) && values_[name].is_number_integer()) return values_[name].dump();
  return text_or(name, "");
}

Result<std::vector<std::string>> CallArguments::texts(const std::string& name) const {
  if (!given(name)) return missing(name);
  const json& value = values_[name];
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  std::vector<std::string> all;
  if (!value.is_array()) return wrong(name, "a text or a list of texts");
  for (const json& item : value) {
    if (!item.is_string()) return wrong(name, "a text or a list of texts");
    all.push_back(item.get<std::string>());
  }
  return all;
}

Result<int64_t> CallArguments::integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max) const {
  if (!given(name)) return otherwise;
  const json* value = single(values_[name], typed_);
  int64_t number = 0;
  bool good = value != nullptr;
  if (good && value->is_string() && !typed_) {
    const auto& text = value->get_ref<const std::string&>();
    const auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    good = failed == std::errc() && stopped == text.data() + text.size();
  } else {
    good = good && value->is_number_integer() && (!value->is_number_unsigned() || *value <= INT64_MAX);
    if (good) number = value->get<int64_t>();
  }
  if (good && number >= min && number <= max) return number;
  return error(Code::kInvalidArgument, name, " has to be a whole number from ", min, " to ", max);
}

Result<std::vector<float>> CallArguments::numbers(const std::string& name) const {
  std::vector<float> numbers;
  if (!given(name)) return missing(name);
  if (!typed_ || !values_[name].is_array()) return wrong(name, "a list of numbers in a POST");
  for (const json& item : values_[name]) {
    if (!item.is_number() || !(std::abs(item.get<double>()) <= 1e30)) return wrong(name, "a list of finite numbers");
    numbers.push_back(item.get<float>());
  }
  return numbers;
}

Result<std::vector<WeightedWord>> CallArguments::weighted_words(const std::string& name) const {
  std::vector<WeightedWord> words;
  if (!given(name)) return missing(name);
  if (!values_[name].is_array()) return wrong(name, "a list of words");
  for (const json& item : values_[name]) {
    STREAMVEC_ASSIGN_OR_RETURN(words.emplace_back(), word_of(name, item, typed_));
  }
  return words;
}

Result<std::vector<std::pair<std::string, std::string>>> CallArguments::pairs(const std::string& name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!given(name)) return missing(name);
  if (!typed_ || !values_[name].is_array()) return wrong(name, "a list of pairs of words in a POST");
  for (const json& item : values_[name]) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_string())
      return wrong(name, "a list of pairs of words");
    pairs.push_back({item[0].get<std::string>(), item[1].get<std::string>()});
  }
  return pairs;
}

Status CallArguments::only(const std::set<std::string>& names) const {
  for (const auto& item : values_.items())
    if (names.count(item.key()) == 0) {
      std::string known;
      for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
      return error(Code::kInvalidArgument, "there is no parameter ", item.key(), "; this call has ",
                   known.empty() ? "none" : known);
    }
  return {};
}

}  // namespace streamvec
