// How many bits a value of a row is sent in, found on the way (--codec auto, short rows): four as long as the wire
// needs little of the time between two pushes for this node's changes, one where it needs much. Each worker finds its
// own; owners answer in what they are asked in. A pure state machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streamvec/sync/codec.h"

namespace streamvec {

class CodecFinder {
 public:
  struct Options {
    double share_most = 1.0 / 3;   // of the time between pushes, for four bits a value, that makes it one
    double share_least = 1.0 / 6;  // makes it four again
    int64_t pushes = 8;            // between two looks; more: steadier, and slower to see a change
    int64_t looks_most = 64;       // that four bits are not tried again for, however often they were too many
  };
  explicit CodecFinder(int64_t dim) : CodecFinder(dim, Options{}) {}
  CodecFinder(int64_t dim, Options options);

  // A push begins. `rows`: those of the last one, to one owner; `bytes_per_s`: what the slowest of the links to them
  // was seen to carry (ReliableLink), 0: not known.
  void pushed(double now_s, int64_t rows, double bytes_per_s);

  CodecKind codec() const { return codec_; }
  // Each change with what was measured, in words; the first and the last few.
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  void look(double now_s, double bytes_per_s);

  const Options options_;
  const double fine_bytes_;  // of a row in a message
  CodecKind codec_ = CodecKind::kFourBit;
  int64_t pushes_ = 0, rows_ = 0;  // since the last look
  double looked_s_ = -1;
  // Little may pass at once where much does not: each time four bits prove too many, they are tried again half as soon.
  int64_t patience_ = 1, looks_ = 0;
  std::vector<std::string> reasons_;
};

}  // namespace streamvec
