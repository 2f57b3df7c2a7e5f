#include "streamvec/core/json.h"

#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

template <typename Json>
Json parsed(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <typename Json>
std::string text_of_json(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  return parsed<nlohmann::json>(text);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return parsed<nlohmann::ordered_json>(text);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return text_of_json(value, indent);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of_json(value, indent);
}

int64_t whole_number(const nlohmann::json& object, const char* name) {
  return object.at(name).get_ref<const nlohmann::json::number_integer_t&>();
}

nlohmann::json read_back(const nlohmann::json& value) {
  return parse_json(json_text(value));
}

}  // namespace streamvec
