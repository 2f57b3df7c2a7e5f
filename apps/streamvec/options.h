// The command line as one table: every command and every option once, with its kind, range, default and help text.
// Flags, config files, help and suggestions are all read from it, and shell completion or a man page can be.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec::cli {

enum class Kind {
  kFlag,     // --json; --json=false takes it back
  kInteger,  // within [min, max]
  kReal,     // within [min, max], finite
  kChoice,   // one of the words in `value`, which are parted by |
  kText,     // anything that `check` takes
};

// `commands` and `required` are names of commands, parted by spaces.
struct Option {
  std::string_view name;  // "dim" is --dim and the config key `dim`; a single letter is -k
  Kind kind;
  std::string_view value;     // what stands for the value in help
  std::string_view initial;   // the default, as one would type it; "" when it has none
  std::string_view note;      // what help says of a default that is not `initial`
  std::string_view commands;  // which have it
  std::string_view help;
  double min = 0, max = 0;
  bool repeated = false;           // may be given several times, and all of them count
  std::string_view required = {};  // which cannot do without it
  // Of a text, what is wrong with it. kInvalidArgument, as check_value().
  Status (*check)(const std::string& value) = nullptr;
};

struct Command {
  std::string_view name;
  std::string_view synopsis;         // after the name
  std::string_view summary;          // one line
  std::string_view details;          // paragraphs, parted by line ends; wrapped when shown
  std::string_view examples;         // lines, shown as they are
  int words_min = 0, words_max = 0;  // arguments that are no options; words_max < 0: any number
};

std::span<const Command> commands();
std::span<const Option> options();
const Command* find_command(std::string_view name);  // nullptr when there is none
std::vector<std::string_view> command_names();
// "--dim", "-k".
std::string flag_of(const Option& option);
bool belongs_to(const Option& option, std::string_view command);

// What was asked for: checked words and values. Asking for an option that the table does not have is a broken
// invariant.
class Arguments {
 public:
  std::vector<std::string> words;

  bool given(std::string_view name) const;  // as a flag or in the config file
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;  // "" when it has no default and was not given
  std::vector<std::string> list(std::string_view name) const;

  // REQUIRES: values passed check_value().
  void set(std::string_view name, std::vector<std::string> values);

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// kInvalidArgument when `value` is not of the option's kind or out of its range; the message begins with `where`
// ("--dim 0", "run.toml:3: dim = 0") and names what is allowed.
Status check_value(const Option& option, std::string_view value, const std::string& where);

// Whether what is wrong can be told from the command line alone, whatever files, hosts and models there are: exit 2.
// Anything else that parse() or a command's check finds is a failure.
inline bool is_misuse(const Status& status) {
  return status.code() == Code::kInvalidArgument || status.code() == Code::kUnimplemented;
}

// Reads what follows the command's name. Of a flag given twice the last one counts, unless the option is repeated;
// `--` ends the flags. --config is read here, and flags win over it. kInvalidArgument: misuse (unknown flag or key with
// the nearest one named, bad value, missing argument); anything else: the config file cannot be read.
Result<Arguments> parse(const Command& command, std::span<const std::string> args);

// The values of a TOML file by option name (config.cc). Keys of other commands are checked and left out, so that one
// file can serve all of them. Errors name file and line.
Result<std::map<std::string, std::vector<std::string>>> read_config(const std::string& path, const Command& command);

}  // namespace streamvec::cli
