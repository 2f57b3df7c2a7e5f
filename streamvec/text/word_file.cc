#include "streamvec/text/word_file.h"

#include <unicode/utf8.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace streamvec {
namespace {

constexpr size_t kBytesMax = size_t{1} << 30;
constexpr size_t kReadBytes = size_t{1} << 16;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status errno_error(const std::string& path, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::kNotFound
                    : number == EACCES                    ? Code::kPermissionDenied
                                                          : Code::kInvalidArgument;
  return error(code, "cannot read ", path, ": ", std::strerror(number), "; check the path");
}

Result<std::string> read_bytes(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return errno_error(path, errno);
  std::string text;
  for (size_t got = kReadBytes; got == kReadBytes;) {
    const size_t before = text.size();
    text.resize(before + kReadBytes);
    got = std::fread(text.data() + before, 1, kReadBytes, file.get());
    if (got < kReadBytes && std::ferror(file.get())) return errno_error(path, errno);
    text.resize(before + got);
    if (text.size() > kBytesMax)
      return error(Code::kResourceExhausted, path, " is larger than 1 GiB; a file of words is expected");
  }
  return text;
}

bool is_text(std::string_view line) {
  for (size_t i = 0; i < line.size();) {
    UChar32 c;
    U8_NEXT(line.data(), i, line.size(), c);
    if (c <= 0) return false;
  }
  return true;
}

}  // namespace

Result<WordFile> read_word_file(const std::string& path) {
  WordFile file;
  STREAMVEC_ASSIGN_OR_RETURN(file.text, read_bytes(path));
  if (file.text.empty()) return error(Code::kInvalidArgument, path, " is empty; a file of words is expected");
  for (std::string_view rest = file.text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    file.lines.push_back(line);
    if (!is_text(line))
      return error(Code::kInvalidArgument, path, ":", file.lines.size(),
                   ": not UTF-8 text; convert it, for example with iconv -t UTF-8");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return file;
}

}  // namespace streamvec
