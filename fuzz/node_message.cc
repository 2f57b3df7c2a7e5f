// What nodes of a cluster send each other (sync/message.h, its payloads by sync/codec.h, cluster/control.h, of streams
// cluster/stream_exchange.h, message_parts.h). Whatever is read is written again as it was, rows rise and stay below
// the end, and a payload fills its rows or is refused.
#include <algorithm>
#include <functional>

#include "fuzz/fuzz.h"
#include "streamvec/cluster/control.h"
#include "streamvec/cluster/message_parts.h"
#include "streamvec/cluster/stream_exchange.h"
#include "streamvec/sync/message.h"

namespace streamvec {
namespace {

constexpr RowKey kEnd = 1'000;
constexpr int64_t kDim = 9;

std::string push(CodecKind codec) {
  Message message;
  message.codec = codec;
  message.epoch = 3;
  message.clock = 17;
  message.version = int64_t{3} << 40;
  message.clocks = {{1, 2, 3}};
  message.rows = {0, 7, 999};
  Matrix rows = std::move(Matrix::make(3, kDim)).value();
  for (int64_t i = 0; i < 3; ++i) rows.row(i)[i] = 0.25f * static_cast<float>(i + 1);
  make_codec(codec)->encode(rows.view(), message.payload);
  return encode(message);
}

StreamReport report() {
  StreamReport report;
  report.words = {1, 2, 0.5, 3, 1, {{4, 2}, {900, 1}}, {{"a", 1}, {"word", 7}}, {{4, 8}, {7, 300}}};
  report.replay = {3.5, 0.25f, 99};
  report.cursors = "{}";
  return report;
}

StreamNews news() {
  StreamNews news;
  news.answered = 3;
  news.met = {300, 0, 1};
  news.words = {4, 6, 6, 1, {{0, 5, 1, "b"}, {300, 6, 2, "c"}}, {1, 2}};
  return news;
}

ReplayItem withdrawal() {
  ReplayItem item;
  item.record = 77;
  return item;
}

ReplayItem chunk() {
  ReplayItem item;
  item.chunk.slots = {3, 900, 3};
  item.chunk.sentence_ends = {1, 3};
  item.stamp = 5;
  return item;
}

void check_stream(std::string_view bytes) {
  if (const auto item = decode_chunk(bytes); item.ok()) STREAMVEC_CHECK(encode_chunk(**item) == bytes);
  if (const Result<StreamReport> report = decode_stream_report(bytes); report.ok()) {
    const Result<StreamReport> again = decode_stream_report(encode(*report));
    STREAMVEC_CHECK(again.ok() && again->words.slots == report->words.slots && again->words.met == report->words.met &&
                    again->cursors == report->cursors);
  }
  if (const Result<StreamNews> news = decode_stream_news(bytes); news.ok()) {
    const Result<StreamNews> again = decode_stream_news(encode(*news));
    STREAMVEC_CHECK(again.ok() && again->words.changes.size() == news->words.changes.size() && again->met == news->met);
    for (const VocabularyChanges::Change& change : news->words.changes)
      STREAMVEC_CHECK(change.slot >= 0 && change.born > news->words.after && change.born <= news->words.stamp);
  }
  MessageParts parts;
  if (const auto whole = parts.take(1, bytes); whole.ok() && *whole)
    STREAMVEC_CHECK(in_parts(**whole, static_cast<int64_t>((*whole)->size())).front() == bytes);
}

void check_rows(std::string_view bytes) {
  const Result<Message> message = decode_message(bytes, {.rows_max = 64, .clocks_max = 16, .key_end = kEnd});
  if (!message.ok()) return;
  STREAMVEC_CHECK(message->rows.size() <= 64 && message->clocks.size() <= 16);
  STREAMVEC_CHECK(std::adjacent_find(message->rows.begin(), message->rows.end(), std::greater_equal<>()) ==
                  message->rows.end());
  STREAMVEC_CHECK(message->rows.empty() || message->rows.back() < kEnd);
  const Result<Message> again = decode_message(encode(*message), {.key_end = kEnd});
  STREAMVEC_CHECK(again.ok() && again->rows == message->rows && again->payload == message->payload);
  Matrix rows = std::move(Matrix::make(static_cast<int64_t>(message->rows.size()), kDim)).value();
  if (!make_codec(message->codec)->decode(message->payload, rows.view()).ok()) return;
}

}  // namespace

FuzzStart fuzz_start() {
  View view{2, {1, 2}, {1}};
  Control ask{ControlKind::kAsk};
  ask.pieces = {{3, 5}, {9, 10}};
  ask.wanted = 7;
  Control newcomers{ControlKind::kView, view};
  newcomers.addresses = {{1, "a:1"}, {2, "b:2"}};
  return {
      .seeds = {push(CodecKind::kFp32), push(CodecKind::kFp16), push(CodecKind::kOneBit), push(CodecKind::kStrom),
                push(CodecKind::kFourBit), encode(Control{ControlKind::kView, view, 0, {}, {}}), encode(Control{}),
                encode(ask), encode(newcomers), encode(report()), encode(news()), encode_chunk(chunk()),
                encode_chunk(withdrawal()), in_parts("words", 9).front()},
      .words = {"kind", "epoch", "workers", "servers", "trained", "fingerprint", "pieces", "standing", "addresses"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_rows(bytes);
  check_stream(bytes);
  if (const Result<Control> control = decode_control(bytes); control.ok())
    STREAMVEC_CHECK(decode_control(encode(*control)).ok());
  return 0;
}
