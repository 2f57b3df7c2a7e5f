#include "streamvec/eval/set_file.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <filesystem>
#include <fstream>

namespace streamvec {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> fields;
  for (;;) {
    const size_t end = text.find(separator);
    fields.emplace_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> split_at_blanks(std::string_view text) {
  std::vector<std::string> fields;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    const size_t end = text.find_first_of(kBlank);
    fields.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end);
  }
  return fields;
}

std::vector<std::string> split(std::string_view line) {
  if (line.find('\t') != std::string_view::npos) return split_at(line, '\t');
  if (line.find(',') != std::string_view::npos) return split_at(line, ',');
  return split_at_blanks(line);
}

}  // namespace

Result<std::vector<SetLine>> read_set_file(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    return error(Code::kInvalidArgument, path, " is a directory; name a file of it");
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::kNotFound, path, " cannot be opened; check the path");
  std::vector<SetLine> lines;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    std::string_view text = line;
    if (number == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    text = trim(text);
    if (text.empty() || text.front() == '#') continue;
    lines.push_back({number, split(text)});
  }
  if (file.bad()) return error(Code::kUnavailable, path, " cannot be read to its end");
  if (lines.empty()) return error(Code::kInvalidArgument, path, " is empty");
  return lines;
}

std::string set_name(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

std::string folded_word(std::string_view word) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFKCCasefoldInstance(code);
  if (U_FAILURE(code)) return std::string(word);
  const auto text = icu::UnicodeString::fromUTF8({word.data(), static_cast<int32_t>(word.size())});
  std::string folded;
  normalizer->normalize(text, code).toUTF8String(folded);
  return U_FAILURE(code) || folded.empty() ? std::string(word) : folded;
}

Slot find_word(const Vocabulary& vocabulary, std::string_view word) {
  const Slot slot = vocabulary.find(word);
  return slot != kNoSlot ? slot : vocabulary.find(folded_word(word));
}

}  // namespace streamvec
