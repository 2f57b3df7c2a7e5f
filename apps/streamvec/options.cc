#include "apps/streamvec/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/streamvec/suggest.h"

namespace streamvec::cli {
namespace {

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

bool has_word(std::string_view words, std::string_view word, char separator) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(separator), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string range_of(const Option& option) {
  std::ostringstream range;
  range.precision(option.kind == Kind::kInteger ? 17 : 6);
  range << option.min << " to " << option.max;
  return range.str();
}

Status check_number(const Option& option, std::string_view value, const std::string& where) {
  double number = 0;
  bool is_number = false;
  if (option.kind == Kind::kInteger) {
    // Parsed as whole number first: from_chars says "out of range" instead of wrapping around.
    int64_t whole = 0;
    is_number = parse_number(value, whole);
    number = static_cast<double>(whole);
    double real = 0;
    if (!is_number && parse_number(value, real) && std::trunc(real) == real && value.find_first_of(".eE") == value.npos)
      return error(Code::kInvalidArgument, where, " is out of range; allowed is ", range_of(option));
  } else {
    is_number = parse_number(value, number) && std::isfinite(number);
  }
  if (!is_number)
    return error(Code::kInvalidArgument, where, " is not a ", option.kind == Kind::kInteger ? "whole number" : "number",
                 "; allowed is ", range_of(option));
  if (number < option.min || number > option.max)
    return error(Code::kInvalidArgument, where, " is out of range; allowed is ", range_of(option));
  return {};
}

const Option* find_option(std::string_view name, std::string_view command) {
  for (const Option& option : options())
    if (option.name == name && belongs_to(option, command)) return &option;
  return nullptr;
}

// The value `name` has without being given. A name that no command has is our own mistake.
std::string_view initial_of(std::string_view name) {
  for (const Option& option : options())
    if (option.name == name) return option.initial;
  std::cerr << "option " << name << " is not in the table" << std::endl;
  std::abort();
}

Status unknown_flag(const Command& command, const std::string& typed) {
  const std::string bare = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  for (const Option& option : options())
    if (option.name == bare && !belongs_to(option, command.name))
      return error(Code::kInvalidArgument, typed, " is no option of `", command.name, "` (", option.commands,
                   " has it); see `streamvec help ", command.name, "`");
  std::vector<std::string_view> names;
  for (const Option& option : options())
    if (belongs_to(option, command.name)) names.push_back(option.name);
  names.push_back("help");
  const std::string nearest = nearest_name(bare, names);
  return error(Code::kInvalidArgument, "unknown option ", typed, "; did you mean ", nearest.size() == 1 ? "-" : "--",
               nearest, "? (`streamvec help ", command.name, "` lists all)");
}

// Takes the arguments apart; `next` walks over them.
class Parser {
 public:
  Parser(const Command& command, std::span<const std::string> args) : command_(command), args_(args) {}

  Status run() {
    while (next_ < args_.size()) {
      const std::string& arg = args_[next_++];
      if (arg == "--") {
        words_.insert(words_.end(), args_.begin() + static_cast<std::ptrdiff_t>(next_), args_.end());
        break;
      }
      if (arg.size() < 2 || arg[0] != '-' || (arg[1] >= '0' && arg[1] <= '9')) {  // no flag is a digit, words may be
        words_.push_back(arg);
      } else {
        STREAMVEC_RETURN_IF_ERROR(take_flag(arg));
      }
    }
    return {};
  }

  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> words_;

 private:
  Status take_flag(const std::string& arg) {
    const size_t dashes = arg[1] == '-' ? 2 : 1;
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(dashes, equals == arg.npos ? arg.npos : equals - dashes);
    const Option* option = find_option(name, command_.name);
    if (option == nullptr && dashes == 1) return take_letter(arg);  // -k10
    if (option == nullptr || (dashes == 1) != (name.size() == 1)) return unknown_flag(command_, arg.substr(0, equals));
    if (equals != arg.npos) return store(*option, arg.substr(equals + 1));
    if (option->kind == Kind::kFlag) return store(*option, "true");
    return take_next(*option);
  }

  Status take_letter(const std::string& arg) {
    const Option* option = find_option(arg.substr(1, 1), command_.name);
    const bool number = arg.size() > 2 && arg.find_first_not_of("0123456789", 2) == arg.npos;
    if (option == nullptr || !number) return unknown_flag(command_, arg.substr(0, arg.find('=')));
    return store(*option, arg.substr(2));
  }

  Status take_next(const Option& option) {
    if (next_ == args_.size() || args_[next_].starts_with("--"))
      return error(Code::kInvalidArgument, flag_of(option), " needs a value: ", flag_of(option), " ", option.value,
                   next_ == args_.size() ? "" : "; write it with = if it begins with --");
    return store(option, args_[next_++]);
  }

  Status store(const Option& option, const std::string& value) {
    STREAMVEC_RETURN_IF_ERROR(check_value(option, value, flag_of(option) + " " + (value.empty() ? "''" : value)));
    auto& values = values_[std::string(option.name)];
    if (!option.repeated) values.clear();
    values.push_back(value);
    return {};
  }

  const Command& command_;
  std::span<const std::string> args_;
  size_t next_ = 0;
};

Status check_complete(const Command& command, const Arguments& arguments) {
  const int count = static_cast<int>(arguments.words.size());
  const auto usage = [&] {
    return "; usage: streamvec " + std::string(command.name) + " " + std::string(command.synopsis);
  };
  if (count < command.words_min)
    return error(Code::kInvalidArgument, command.name, " needs ", command.words_min, " argument",
                 command.words_min == 1 ? "" : "s", command.words_max == command.words_min ? "" : " or more", ", got ",
                 count, usage());
  if (command.words_max >= 0 && count > command.words_max)
    return error(Code::kInvalidArgument, "unexpected argument ", arguments.words[command.words_max], usage());
  for (const Option& option : options())
    if (has_word(option.required, command.name, ' ') && !arguments.given(option.name))
      return error(Code::kInvalidArgument, command.name, " needs ", flag_of(option), " ", option.value, usage());
  return {};
}

}  // namespace

const Command* find_command(std::string_view name) {
  for (const Command& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  return names;
}

std::string flag_of(const Option& option) {
  return (option.name.size() == 1 ? "-" : "--") + std::string(option.name);
}

bool belongs_to(const Option& option, std::string_view command) {
  return has_word(option.commands, command, ' ');
}

bool Arguments::given(std::string_view name) const {
  return values_.find(name) != values_.end();
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  const std::string_view initial = initial_of(name);
  return initial.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(initial)};
}

std::string Arguments::text(std::string_view name) const {
  const std::vector<std::string> values = list(name);
  return values.empty() ? "" : values.back();
}

bool Arguments::flag(std::string_view name) const {
  return text(name) == "true";
}

int64_t Arguments::integer(std::string_view name) const {
  int64_t number = 0;
  STREAMVEC_CHECK(parse_number(text(name), number));
  return number;
}

double Arguments::real(std::string_view name) const {
  double number = 0;
  STREAMVEC_CHECK(parse_number(text(name), number));
  return number;
}

void Arguments::set(std::string_view name, std::vector<std::string> values) {
  values_[std::string(name)] = std::move(values);
}

Status check_value(const Option& option, std::string_view value, const std::string& where) {
  switch (option.kind) {
    case Kind::kInteger:
    case Kind::kReal:
      return check_number(option, value, where);
    case Kind::kFlag:
      if (value == "true" || value == "false") return {};
      return error(Code::kInvalidArgument, where, " is neither true nor false");
    case Kind::kChoice:
      if (!value.empty() && has_word(option.value, value, '|')) return {};
      return error(Code::kInvalidArgument, where, " is not one of ", option.value);
    case Kind::kText:
      if (value.empty()) return error(Code::kInvalidArgument, where, " is empty; it wants ", option.value);
      if (option.check == nullptr) return {};
      if (const Status checked = option.check(std::string(value)); !checked.ok())
        return error(Code::kInvalidArgument, where, ": ", checked.message());
      return {};
  }
  return {};
}

Result<Arguments> parse(const Command& command, std::span<const std::string> args) {
  Parser parser(command, args);
  STREAMVEC_RETURN_IF_ERROR(parser.run());
  Arguments arguments;
  if (const auto config = parser.values_.find("config"); config != parser.values_.end()) {
    STREAMVEC_ASSIGN_OR_RETURN(auto values, read_config(config->second.back(), command));
    for (auto& [name, value] : values) arguments.set(name, std::move(value));
  }
  for (auto& [name, value] : parser.values_) arguments.set(name, std::move(value));
  arguments.words = std::move(parser.words_);
  STREAMVEC_RETURN_IF_ERROR(check_complete(command, arguments));
  return arguments;
}

}  // namespace streamvec::cli
