#include "streamvec/train/counting.h"

#include <vector>

#include "streamvec/core/threads.h"
#include "streamvec/train/feed.h"
#include "streamvec/train/pacer.h"

namespace streamvec {

Result<Counted> count_words(Source& source, const TokenizerOptions& tokenizer, int64_t types_max, int32_t threads,
                            const TrainHooks& hooks) {
  STREAMVEC_RETURN_IF_ERROR(source.seek(""));
  Feed feed(source, 1, RunState());
  feed.keep_trail();
  std::vector<WordCounter> counters(static_cast<size_t>(threads), WordCounter(types_max));
  Threads workers;
  const Status started = workers.start(threads, [&](int64_t i) {
    Tokenizer cutter(tokenizer);
    Tokens tokens;
    Piece piece;
    while (feed.next(piece)) {
      cutter.tokenize(piece.document.text, tokens);
      counters[static_cast<size_t>(i)].add(tokens.words);
      PieceResult result;
      result.tokens = static_cast<int64_t>(tokens.words.size());
      feed.finish(piece, result);
    }
  });
  if (!started.ok()) feed.stop();
  bool stopped = false;
  Pacer pacer;
  while (!feed.over()) {
    if (hooks.stop != nullptr && hooks.stop->load()) {
      stopped = true;
      feed.stop();
    }
    if (pacer.wait() && hooks.counting) hooks.counting(feed.state().tokens, feed.bytes_fraction());
  }
  workers.join();
  STREAMVEC_RETURN_IF_ERROR(started);
  STREAMVEC_RETURN_IF_ERROR(feed.status());
  Counted counted{std::move(counters.front()), feed.state().tokens, feed.state().step, feed.take_trail(), stopped};
  for (size_t i = 1; i < counters.size(); ++i) counted.words.merge(counters[i]);
  return counted;
}

Result<TextPieces> count_pieces(Source& source, const std::string& cursor) {
  STREAMVEC_RETURN_IF_ERROR(source.seek(""));
  TextPieces pieces;
  for (std::vector<Document> documents;; documents.clear()) {
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source.read(1, Deadline::never(), documents));
    if (count == 0) break;
    pieces.trail.note(++pieces.all, documents.front().cursor);
    if (documents.front().cursor == cursor) pieces.before = pieces.all;
  }
  STREAMVEC_RETURN_IF_ERROR(source.seek(cursor));
  return pieces;
}

}  // namespace streamvec
