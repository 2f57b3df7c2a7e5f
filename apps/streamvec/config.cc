// Options from a TOML file. toml++ reports by exception; they end here.
#include <toml++/toml.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "apps/streamvec/options.h"
#include "apps/streamvec/suggest.h"

namespace streamvec::cli {
namespace {

constexpr int64_t kBytesMax = 1 << 20;

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::kNotFound, path, ": cannot be read; --config wants a TOML file");
  std::string text(kBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return error(Code::kNotFound, path, ": cannot be read; --config wants a TOML file");
  if (file.gcount() > kBytesMax)
    return error(Code::kInvalidArgument, path, " is larger than 1 MB; --config wants a TOML file of options");
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The value as one would type it as a flag; nothing for what no option can be (a table, a date).
std::optional<std::string> typed(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* real = node.as_floating_point()) {
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, real->get()).ptr);
  }
  return std::nullopt;
}

Result<std::vector<std::string>> values_of(const Option& option, const toml::node& node, const std::string& where) {
  std::vector<std::string> values;
  const auto take = [&](const toml::node& one) -> Status {
    const auto value = typed(one);
    if (!value)
      return error(Code::kInvalidArgument, where, ": ", option.name, " wants ", option.value, ", not a ",
                   one.is_array() ? "list" : "table or date");
    values.push_back(*value);
    return check_value(option, *value, where + ": " + std::string(option.name) + " = " + *value);
  };
  if (const toml::array* list = node.as_array(); list != nullptr && option.repeated) {
    for (const toml::node& one : *list) STREAMVEC_RETURN_IF_ERROR(take(one));
  } else {
    STREAMVEC_RETURN_IF_ERROR(take(node));
  }
  return values;
}

Status unknown_key(const std::string& key, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Option& option : options())
    if (option.name != "config") names.push_back(option.name);
  return error(Code::kInvalidArgument, where, ": unknown key ", key, "; did you mean ", nearest_name(key, names), "?");
}

Result<toml::table> parse_toml(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& failure) {
    return error(Code::kInvalidArgument, path, ":", failure.source().begin.line, ": ", failure.description());
  }
}

}  // namespace

Result<std::map<std::string, std::vector<std::string>>> read_config(const std::string& path, const Command& command) {
  STREAMVEC_ASSIGN_OR_RETURN(const toml::table table, parse_toml(path));
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    const std::string where = path + ":" + std::to_string(toml_key.source().begin.line);
    const Option *own = nullptr, *of_others = nullptr;
    int rows = 0;  // of that name
    for (const Option& option : options()) {
      if (option.name != key || key == "config") continue;
      ++rows;
      (belongs_to(option, command.name) ? own : of_others) = &option;
    }
    if (rows == 0) return unknown_key(key, where);
    if (own == nullptr && rows > 1) continue;  // for which command it was meant is not known
    STREAMVEC_ASSIGN_OR_RETURN(auto value, values_of(own != nullptr ? *own : *of_others, node, where));
    if (own != nullptr) values[key] = std::move(value);
  }
  return values;
}

}  // namespace streamvec::cli
