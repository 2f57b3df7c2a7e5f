#include "streamvec/cluster/stream_message.h"

#include <cmath>
#include <limits>
#include <span>

#include "streamvec/vocab/state_bytes.h"

namespace streamvec {
namespace {

constexpr char kStreamMagic = 's';

void put_block(std::string_view block, StateWriter& out) {
  out.put(static_cast<uint64_t>(block.size()));
  out.put_all(std::span<const char>(block));
}

std::string get_block(StateReader& in) {
  std::string block(static_cast<size_t>(in.get_count(1)), '\0');
  in.get_all(std::span<char>(block));
  return block;
}

}  // namespace

Status unreadable_stream() {
  return error(Code::kInvalidArgument,
               "a message about a stream that nobody can read; the sender runs another version");
}

std::string stream_message(StreamKind kind, std::string_view body) {
  return std::string{kStreamMagic, static_cast<char>(kind)}.append(body);
}

std::optional<std::string_view> body_of(std::string_view bytes, StreamKind kind) {
  if (bytes.size() < 2 || bytes[0] != kStreamMagic || bytes[1] != static_cast<char>(kind)) return std::nullopt;
  return bytes.substr(2);
}

bool is_of_stream(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == kStreamMagic;
}

std::string encode(const StreamReport& report) {
  StateWriter out;
  out.put(report.replay.log2_sum);
  out.put(report.replay.least);
  out.put(report.replay.sampled);
  out.put(report.save);
  put_block(report.cursors, out);
  return stream_message(StreamKind::kReport, out.bytes() + encode(report.words));
}

Result<StreamReport> decode_stream_report(std::string_view bytes) {
  const std::optional<std::string_view> body = body_of(bytes, StreamKind::kReport);
  if (!body) return unreadable_stream();
  StateReader in(*body);
  StreamReport report;
  report.replay.log2_sum = in.get<double>();
  report.replay.least = in.get<float>();
  report.replay.sampled = in.get<int64_t>();
  report.save = in.get<int64_t>();
  report.cursors = get_block(in);
  if (!in.ok() || std::isnan(report.replay.log2_sum) || !(report.replay.least >= 0)) return unreadable_stream();
  STREAMVEC_ASSIGN_OR_RETURN(report.words, decode_vocabulary_report(body->substr(in.offset())));
  return report;
}

std::string encode(const StreamNews& news) {
  StateWriter out;
  out.put(news.answered);
  out.put(news.reference);
  out.put(news.save);
  out.put(news.saved);
  out.put(static_cast<uint8_t>(news.stop));
  out.put(news.divide);
  out.put(news.divided);
  put_block(news.division, out);
  out.put(static_cast<uint64_t>(news.met.size()));
  for (const uint32_t times : news.met) out.put_varint(times);
  return stream_message(StreamKind::kNews, out.bytes() + encode(news.words));
}

Result<StreamNews> decode_stream_news(std::string_view bytes) {
  const std::optional<std::string_view> body = body_of(bytes, StreamKind::kNews);
  if (!body) return unreadable_stream();
  StateReader in(*body);
  StreamNews news;
  news.answered = in.get<int64_t>();
  news.reference = in.get<float>();
  news.save = in.get<int64_t>();
  news.saved = in.get<int64_t>();
  news.stop = in.get<uint8_t>() != 0;
  news.divide = in.get<int64_t>();
  news.divided = in.get<int64_t>();
  news.division = get_block(in);
  const int64_t slots = in.get_count(1);
  for (int64_t i = 0; i < slots && in.ok(); ++i) {
    const uint64_t times = in.get_varint();
    if (times > std::numeric_limits<uint32_t>::max()) in.fail();
    news.met.push_back(static_cast<uint32_t>(times));
  }
  if (!in.ok() || !(news.reference >= 0) || !std::isfinite(news.reference)) return unreadable_stream();
  STREAMVEC_ASSIGN_OR_RETURN(news.words, decode_vocabulary_changes(body->substr(in.offset())));
  return news;
}

}  // namespace streamvec
