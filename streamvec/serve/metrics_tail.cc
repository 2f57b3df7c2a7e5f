#include "streamvec/serve/metrics_tail.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace streamvec {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Whole lines from `begin` on, in pieces; returns where the last of them ends.
int64_t read_lines(const std::string& path, int64_t begin, const std::function<void(const std::string& line)>& take) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(begin);
  std::vector<char> piece(kPieceBytes);
  std::string line;
  int64_t end = begin;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto stop = piece.begin() + std::max<std::streamsize>(file.gcount(), 0);
    for (auto at = piece.begin(); at != stop;) {
      const auto line_end = std::find(at, stop, '\n');
      line.append(at, line_end);
      if (line_end == stop) break;
      end += static_cast<int64_t>(line.size()) + 1;
      take(line);
      line.clear();
      at = line_end + 1;
    }
  }
  return end;
}

}  // namespace

void MetricsTail::read(const Take& take) {
  struct stat info {};
  const auto give = [&](bool again) { return [&take, again](const std::string& line) { take(line, again); }; };
  if (at_ < 0) read_lines(path_ + ".1", 0, give(false));
  at_ = std::max<int64_t>(at_, 0);
  if (::stat(path_.c_str(), &info) != 0) return;
  const bool another = file_ != info.st_ino || info.st_size < at_;
  if (!another && info.st_size == size_) return;  // a line that was cut off is not looked at again and again
  const bool again = another && file_ != 0;
  if (another) at_ = 0;
  file_ = info.st_ino;
  size_ = info.st_size;
  at_ = read_lines(path_, at_, give(again));
}

}  // namespace streamvec
