#include "streamvec/cluster/codec_finder.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace streamvec {
namespace {

constexpr double kBesideRow = 4;  // bytes of a message for a row's key and shares
constexpr size_t kReasons = 8;    // of a stream that may go to and fro for months

}  // namespace

CodecFinder::CodecFinder(int64_t dim, Options options)
    : options_(options),
      fine_bytes_(kBesideRow + static_cast<double>(make_codec(CodecKind::kFourBit)->by_row()->row_bytes(dim))) {}

void CodecFinder::pushed(double now_s, int64_t rows, double bytes_per_s) {
  if (looked_s_ < 0) {
    looked_s_ = now_s;
    return;
  }
  rows_ += rows;
  if (++pushes_ < options_.pushes || now_s <= looked_s_) return;
  if (bytes_per_s > 0) look(now_s, bytes_per_s);
  looked_s_ = now_s;
  pushes_ = rows_ = 0;
}

void CodecFinder::look(double now_s, double bytes_per_s) {
  const double share = static_cast<double>(rows_) * fine_bytes_ / bytes_per_s / (now_s - looked_s_);
  const bool fine = codec_ == CodecKind::kFourBit;
  if (fine ? share <= options_.share_most : share >= options_.share_least || ++looks_ < patience_) return;
  looks_ = 0;
  if (fine) patience_ = std::min(2 * patience_, options_.looks_most);
  codec_ = fine ? CodecKind::kOneBit : CodecKind::kFourBit;
  std::ostringstream why;
  why << "--codec auto: " << name_of(codec_) << ": a link carries " << std::llround(bytes_per_s / 1e3)
      << " KB/s and would need " << std::llround(100 * share) << "% of the time for four bits a value";
  if (reasons_.size() == kReasons) reasons_.erase(reasons_.begin() + 1);
  reasons_.push_back(why.str());
}

}  // namespace streamvec
