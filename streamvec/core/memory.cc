#include "streamvec/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace streamvec {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number behind `key` in a file of "key number" lines, which /proc and control groups have; the first number of all
// for an empty key. None where there is no such file or line, or no number ("max").
std::optional<int64_t> number_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t digits = line.find_first_of("0123456789", key.size());
    if (digits == line.npos) return {};
    return static_cast<int64_t>(std::min(std::strtod(line.c_str() + digits, nullptr), 0x1p62));
  }
  return {};
}

int64_t free_of_system() {
  const auto free_kb = number_in("/proc/meminfo", "MemAvailable:");
  return free_kb ? *free_kb * 1024 : kNoLimit;
}

// Pages of files that were read are counted as taken, but go when they are needed.
int64_t free_of_group(const std::string& dir, const char* limit, const char* usage, const char* cache) {
  const auto most = number_in(dir + limit, ""), taken = number_in(dir + usage, "");
  if (!most || !taken || *most > (int64_t{1} << 60)) return kNoLimit;
  return std::max<int64_t>(0, *most - *taken + number_in(dir + "/memory.stat", cache).value_or(0));
}

// Of the process's own groups and all above them, of both versions of control groups.
int64_t free_of_groups() {
  int64_t least = kNoLimit;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "0::/path" of the second version, "4:cpu,memory:/path" of the first.
    const size_t path = line.find(":/");
    const bool second = line.starts_with("0::");
    if (path == line.npos || (!second && line.find("memory") > path)) continue;
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string group = line.substr(path + 1);
    for (;; group.resize(group.rfind('/'))) {
      const std::string dir = root + group;
      least = std::min(least, second ? free_of_group(dir, "/memory.max", "/memory.current", "inactive_file ")
                                     : free_of_group(dir, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                                     "total_inactive_file "));
      if (group.empty() || group == "/") break;
    }
  }
  return least;
}

int64_t free_of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const int64_t taken = number_in("/proc/self/status", "VmSize:").value_or(0) * 1024;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - taken);
}

}  // namespace

int64_t resident_memory() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t available_memory() {
  return std::min({free_of_system(), free_of_groups(), free_of_process()});
}

Status no_memory(std::string_view what, double bytes, std::string_view advice) {
  const auto megabytes = [](double count) { return static_cast<int64_t>(std::min(std::ceil(count / 0x1p20), 0x1p62)); };
  return error(Code::kResourceExhausted, "no memory for ", what, ": ", megabytes(bytes), " MB are needed, ",
               megabytes(static_cast<double>(available_memory())), " MB are free; try ", advice);
}

Status check_memory(std::string_view what, double bytes, std::string_view advice) {
  constexpr double kSmall = 0x1p24;  // not worth a look
  if (bytes <= kSmall || bytes <= static_cast<double>(available_memory())) return {};
  return no_memory(what, bytes, advice);
}

}  // namespace streamvec
