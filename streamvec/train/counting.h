// The pass over the text that finds its vocabulary, before training, where a source can be read twice.
#pragma once

#include <cstdint>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"
#include "streamvec/train/cursor_trail.h"
#include "streamvec/train/trainer.h"
#include "streamvec/vocab/counter.h"

namespace streamvec {

struct Counted {
  WordCounter words;
  int64_t tokens = 0;    // raw tokens, those of every type
  int64_t pieces = 0;    // of text, as the source hands them out
  CursorTrail trail;     // where they begin
  bool stopped = false;  // hooks.stop was set: the counts are of a part
};

// Reads the source from its beginning to its end with `threads` threads and leaves it at its end.
Result<Counted> count_words(Source& source, const TokenizerOptions& tokenizer, int64_t types_max, int32_t threads,
                            const TrainHooks& hooks);

// How many pieces of text the source has, and how many of them up to the one that carried `cursor`. Leaves it there.
struct TextPieces {
  int64_t all = 0, before = 0;
  CursorTrail trail;  // where they begin
};
Result<TextPieces> count_pieces(Source& source, const std::string& cursor);

}  // namespace streamvec
