// What every fuzz target is made of. A target is one file: what is fuzzed, where to start, and the property that any
// input must leave true. The `fuzz` preset links it with libFuzzer (and seeds.cc), all other presets with driver.cc.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

// The target itself: libFuzzer's name for it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace streamvec {

// Where to start: inputs that are well-formed, and words of the format that chance would hardly find.
struct FuzzStart {
  std::vector<std::string> seeds;
  std::vector<std::string> words = {};
};
FuzzStart fuzz_start();  // each target has its own

// An input read from its front: settings first, what remains is the text.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  // 0 when there is none left.
  uint8_t byte() {
    const uint8_t value = rest_.empty() ? 0 : static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    return value;
  }
  // Without its LF.
  std::string_view line() {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(line.size() < rest_.size() ? line.size() + 1 : line.size());
    return line;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// A file that is in memory only, for readers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes = "") : descriptor_(::memfd_create("fuzz", 0)) {
    STREAMVEC_CHECK(descriptor_ >= 0);
    STREAMVEC_CHECK_EQ(::write(descriptor_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  std::string bytes() const {
    std::string bytes(static_cast<size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    STREAMVEC_CHECK_EQ(::pread(descriptor_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }

 private:
  int descriptor_;
};

// Whether `text` is UTF-8 (RFC 3629). Its own, so that no decoder under test is its own judge.
inline bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<uint8_t>(text[at++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - at < static_cast<size_t>(more)) return false;
    uint32_t point = lead & (0x3F >> more);
    for (int i = 0; i < more; ++i, ++at) {
      if ((text[at] & 0xC0) != 0x80) return false;
      point = point << 6 | (text[at] & 0x3F);
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ||
        point < (more == 3   ? 0x10000U
                 : more == 2 ? 0x800
                             : 0))
      return false;
  }
  return true;
}

}  // namespace streamvec
