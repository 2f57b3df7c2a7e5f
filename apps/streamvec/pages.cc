#include "apps/streamvec/pages.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "apps/streamvec/help.h"
#include "apps/streamvec/options.h"

namespace streamvec::cli {
namespace {

// As text for troff: no character is taken for a command of its own.
std::string troff(std::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (text[i] == '.' || text[i] == '\'')) safe += "\\&";
    if (text[i] == '\\')
      safe += "\\e";
    else if (text[i] == '-')
      safe += "\\-";
    else
      safe += text[i];
  }
  return safe;
}

std::string paragraphs(std::string_view details) {
  std::string text;
  std::istringstream lines{std::string(details)};
  for (std::string line; std::getline(lines, line);) text += ".PP\n" + troff(line) + "\n";
  return text;
}

std::string example_block(std::string_view examples) {
  if (examples.empty()) return "";
  return ".PP\n.RS 4\n.nf\n" + troff(examples) + ".fi\n.RE\n";
}

std::string section_of(const Command& command) {
  std::string text = ".SS \"streamvec " + troff(command.name);
  if (!command.synopsis.empty()) text += " " + troff(command.synopsis);
  std::string summary(command.summary);
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  return text + "\"\n" + troff(summary) + ".\n" + paragraphs(command.details) + example_block(command.examples);
}

// "of train, eval: ..." so that every option stands once.
std::string entry_of(const Option& option) {
  std::string names(option.commands);
  for (size_t at = 0; (at = names.find(' ', at)) != std::string::npos; at += 2) names.replace(at, 1, ", ");
  std::string text = ".TP\n\\fB" + troff(flag_of(option)) + "\\fR";
  if (!option.value.empty()) text += " \\fI" + troff(option.value) + "\\fR";
  return text + "\n" + troff(explained(option)) + "\n.br\nCommands: " + troff(names) + ".\n";
}

// The flags of a command, or the words that an option may be, parted by spaces.
std::string flags_of(std::string_view command) {
  std::string flags = "--help";
  for (const Option& option : options())
    if (belongs_to(option, command)) flags += " " + flag_of(option);
  return flags;
}

std::string choices_of(const Option& option) {
  std::string words(option.value);
  std::replace(words.begin(), words.end(), '|', ' ');
  return words;
}

std::string all_commands() {
  std::string names;
  for (const std::string_view name : command_names()) names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

// What a value may be, as a branch of the script: the words of a choice; files for text; nothing for numbers.
std::string branch_of(const Option& option) {
  if (option.kind == Kind::kFlag) return "";
  std::string branch = "    " + flag_of(option) + ") ";
  if (option.kind == Kind::kChoice) return branch + "_streamvec_words \"" + choices_of(option) + "\"; return ;;\n";
  if (option.kind == Kind::kText) return branch + "_streamvec_files; return ;;\n";
  return branch + "return ;;\n";
}

}  // namespace

std::string man_page(std::string_view version) {
  std::string text = ".TH STREAMVEC 1 \"\" \"streamvec " + troff(version) + "\" \"User Commands\"\n";
  text += ".SH NAME\nstreamvec \\- word vectors that keep up with text\n.SH SYNOPSIS\n";
  text += ".B streamvec\n.I COMMAND\n.RI [ ARGUMENT ...]\n.RI [ OPTION ...]\n";
  text +=
      ".SH DESCRIPTION\nLearns word vectors from files, feeds, brokers and sockets, in one process or in many, and "
      "answers "
      "questions about them.\nResults go to standard output, progress and errors to standard error.\n.SH COMMANDS\n";
  for (const Command& command : commands()) text += section_of(command);
  text += ".SH OPTIONS\n\\fB\\-\\-\\fR ends the options.\n";
  for (const Option& option : options()) text += entry_of(option);
  text += ".SH EXIT STATUS\n.TP\n0\nDone; also after Ctrl\\-C, SIGTERM or SIGHUP, when what was learnt is saved.\n";
  text += ".TP\n1\nFailed; one line on standard error says what, where and what to try.\n.TP\n2\nMisuse.\n";
  text +=
      ".SH FILES\nA model is a directory: a folder for each of the two newest checkpoints, and the file "
      "\\fIlatest\\fR.\n";
  return text;
}

std::string bash_completion() {
  std::string text =
      "# Completion of streamvec for bash, made from the program's own table of commands and options.\n"
      "_streamvec_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$current\")); }\n"
      "_streamvec_files() { compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); "
      "}\n"
      "_streamvec() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i\n"
      "  COMPREPLY=()\n"
      "  # --model=sgns comes as three words.\n"
      "  if [[ $current == = ]]; then current=; elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}; "
      "fi\n"
      "  if ((COMP_CWORD == 1)); then _streamvec_words \"" +
      all_commands() +
      " --help --version\"; return; fi\n"
      "  # What launch starts is a command of its own.\n"
      "  for ((i = 2; i < COMP_CWORD; ++i)); do\n"
      "    [[ ${COMP_WORDS[i]} == -- ]] || continue\n"
      "    if ((COMP_CWORD == i + 1)); then _streamvec_words train; return; fi\n"
      "    command=${COMP_WORDS[i + 1]}\n"
      "    break\n"
      "  done\n"
      "  case $option in\n";
  for (const Option& option : options()) text += branch_of(option);
  text += "  esac\n  case $command in\n    help) _streamvec_words \"" + all_commands() + "\"; return ;;\n";
  for (const std::string_view name : command_names())
    if (name != "help")
      text += "    " + std::string(name) + ") [[ $current == -* ]] && { _streamvec_words \"" + flags_of(name) +
              "\"; return; } ;;\n";
  return text + "  esac\n  _streamvec_files\n}\ncomplete -F _streamvec streamvec\n";
}

}  // namespace streamvec::cli
