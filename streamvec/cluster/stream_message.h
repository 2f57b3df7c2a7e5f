// What nodes that train on streams tell each other, as bytes (stream_exchange.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/replay/union.h"
#include "streamvec/vocab/shared_vocabulary_message.h"

namespace streamvec {

// Of a node to the leader.
struct StreamReport {
  VocabularyReport words;
  ReplayShare replay;
  int64_t save = 0;     // the save that `cursors` are for
  std::string cursors;  // where the node's sources stand; "": not told
};
// Of the leader to a node.
struct StreamNews {
  int64_t answered = 0;  // the node's last report that was counted
  float reference = 0;   // of its replay (ReplayUnion); 0: its own
  int64_t save = 0;      // cursors are wanted for the save of that number
  int64_t saved = 0;     // the last one that is safe
  bool stop = false;
  int64_t divide = 0;    // shared sources are to stand still when cursors are told for the save of that number
  int64_t divided = 0;   // for which `division` was made
  std::string division;  // who reads what of them from now on; "": not told
  // With counts of words, by slot: as often as all nodes have trained on them (met_counts.h).
  std::vector<uint32_t> met;
  VocabularyChanges words;
};
std::string encode(const StreamReport& report);
std::string encode(const StreamNews& news);
// kInvalidArgument for bytes that encode() does not write.
Result<StreamReport> decode_stream_report(std::string_view bytes);
Result<StreamNews> decode_stream_news(std::string_view bytes);

// All of them, in their second byte.
enum class StreamKind : char {
  kReport = 'r',
  kNews = 'n',
  kChunk = 'k',    // of a node that only reads: text, or a record that is withdrawn (chunk_relay.h)
  kTaken = 't',    // how many of these have come into replay or left it
  kAsk = 'q',      // of one that takes the leader's place: for changes of hands after one that it has heard of
  kChanges = 'w',  // the answer: VocabularyChanges
  kPart = 'p',     // of one of the others that is long (message_parts.h)
};
std::string stream_message(StreamKind kind, std::string_view body);
// What follows the first two bytes; nullopt when they are others.
std::optional<std::string_view> body_of(std::string_view bytes, StreamKind kind);
// They differ from what else nodes tell each other (control.h, sync/message.h) in the first byte.
bool is_of_stream(std::string_view bytes);
Status unreadable_stream();

}  // namespace streamvec
