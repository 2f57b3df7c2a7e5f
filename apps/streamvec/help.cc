#include "apps/streamvec/help.h"

#include <algorithm>
#include <sstream>

namespace streamvec::cli {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kHelpColumn = 30;

// `text` broken between words into lines that begin at `column`; the first is already that far.
std::string wrapped(std::string_view text, size_t column) {
  std::string lines;
  size_t at = column;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (at > column && at + 1 + word.size() > kColumns) {
      lines += "\n" + std::string(column, ' ');
      at = column;
    }
    if (at > column) {
      lines += ' ';
      ++at;
    }
    lines += word;
    at += word.size();
  }
  return lines + "\n";
}

std::string default_of(const Option& option) {
  const std::string_view shown = option.note.empty() ? option.initial : option.note;
  if (option.kind == Kind::kFlag || shown.empty()) return "";
  return " (default: " + std::string(shown) + ")";
}

std::string line_of(const Option& option) {
  std::string line = "  " + flag_of(option);
  if (!option.value.empty()) line += " " + std::string(option.value);
  if (line.size() + 2 > kHelpColumn) {
    line += "\n" + std::string(kHelpColumn, ' ');
  } else {
    line.resize(kHelpColumn, ' ');
  }
  return line + wrapped(explained(option), kHelpColumn);
}

std::string indented(std::string_view lines) {
  std::string text;
  std::istringstream stream{std::string(lines)};
  for (std::string line; std::getline(stream, line);) text += "  " + line + "\n";
  return text;
}

}  // namespace

std::string explained(const Option& option) {
  const std::string repeat = option.repeated ? "; may be given several times" : "";
  return std::string(option.help) + repeat + default_of(option);
}

std::string greeting() {
  return "streamvec learns word vectors from text. Try:\n"
         "  streamvec demo\n"
         "  streamvec train corpus.txt --out model && streamvec nearest model king\n"
         "`streamvec help` lists all commands.\n";
}

std::string overview() {
  std::string text = "streamvec COMMAND ...: word vectors from text\n\n";
  for (const Command& command : commands()) {
    std::string name = "  " + std::string(command.name);
    name.resize(12, ' ');
    text += name + std::string(command.summary) + "\n";
  }
  return text +
         "\n`streamvec help COMMAND` explains one and its options.\n"
         "Results go to standard output, progress and errors to standard error.\n"
         "Exit: 0 done, 1 failed, 2 misuse.\n";
}

std::string help_of(const Command& command) {
  std::string text = "streamvec " + std::string(command.name);
  if (!command.synopsis.empty()) text += " " + std::string(command.synopsis);
  text += "\n  " + std::string(command.summary) + "\n";
  if (!command.details.empty()) text += "\n";
  std::istringstream paragraphs{std::string(command.details)};
  for (std::string paragraph; std::getline(paragraphs, paragraph);) text += wrapped(paragraph, 0);
  std::string lines;
  for (const Option& option : options())
    if (belongs_to(option, command.name)) lines += line_of(option);
  if (!lines.empty()) text += "\nOptions\n" + lines;
  if (!command.examples.empty()) text += "\nExamples\n" + indented(command.examples);
  return text;
}

}  // namespace streamvec::cli
