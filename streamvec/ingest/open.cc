#include "streamvec/ingest/open.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <utility>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/archive/warc_source.h"
#include "streamvec/source/archive/wikipedia_source.h"
#include "streamvec/source/broker/kafka_source.h"
#include "streamvec/source/broker/nats_source.h"
#include "streamvec/source/broker/redis_source.h"
#include "streamvec/source/chain_source.h"
#include "streamvec/source/file_source.h"
#include "streamvec/source/http/crawl_source.h"
#include "streamvec/source/live/sse_source.h"
#include "streamvec/source/live/websocket_source.h"
#include "streamvec/source/newsroom/newsroom_source.h"
#include "streamvec/source/planted.h"
#include "streamvec/source/record_source.h"
#include "streamvec/source/stdin_source.h"
#include "streamvec/source/tail_source.h"
#include "streamvec/source/watch_source.h"

namespace streamvec {
namespace {

using Opened = Result<std::unique_ptr<Source>>;

// A kind of source that is named by URL. `open` gets the whole name.
struct Kind {
  std::string_view scheme;  // with its colon
  std::string_view help;
  Opened (*open)(const std::string& name);
};
constexpr Kind kKinds[] = {
    {"http://", "http://... (feed, sitemap or page)", CrawlSource::open},
    {"https://", "https://... (likewise)", CrawlSource::open},
    {"sse+http://", "sse+http://... (server-sent events)", SseSource::open},
    {"sse+https://", "sse+https://...", SseSource::open},
    {"ws://", "ws://... (WebSocket, Jetstream)", WebSocketSource::open},
    {"wss://", "wss://...", WebSocketSource::open},
    {"nats://", "nats://HOST/STREAM", NatsSource::open},
    {"kafka://", "kafka://HOST/TOPIC", KafkaSource::open},
    {"redis://", "redis://HOST/STREAM", RedisSource::open},
    {"warc:", "warc:PATH (WARC, WET)", WarcSource::open},
    {"wikipedia:", "wikipedia:PATH (dump)", WikipediaSource::open},
    {"jsonl:", "jsonl:PATH?text=/title,/body", RecordSource::open},
    {"tsv:", "tsv:PATH?text=3,4&id=2&time=1", RecordSource::open},
    {"tail:", "tail:PATH (a file being appended to)", TailSource::open},
    {"watch:", "watch:DIR (files that appear there)", WatchSource::open},
    {"newsroom:", "newsroom: (a made-up news site on this machine)", NewsroomSource::open},
    {"planted:", "planted:?tokens=N&seed=N (made-up text with known answers)", PlantedSource::open},
};

const Kind* kind_of(std::string_view name) {
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& candidate) { return name.starts_with(candidate.scheme); });
  return kind == std::end(kKinds) ? nullptr : kind;
}

// "foo" of "foo://bar", "" of what is no URL.
std::string_view scheme_of(std::string_view name) {
  const size_t end = name.find("://");
  if (end == std::string_view::npos || end == 0) return "";
  const std::string_view scheme = name.substr(0, end);
  const bool valid = std::all_of(scheme.begin(), scheme.end(), [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '+' || byte == '-' || byte == '.';
  });
  return valid ? scheme : "";
}

Status unknown_scheme(const std::string& name, std::string_view scheme) {
  std::string known = "a path (file, .gz .zst .xz .bz2 too, directory or pipe), - for standard input";
  for (const Kind& kind : kKinds) known += ", " + std::string(kind.help);
  return error(Code::kInvalidArgument, "no source is known for ", scheme, ":// (", name, "); a source is ", known);
}

bool is_stream(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Opened open_stream(const std::string& path, bool empty_ok) {
  if (path == "-") return StdinSource::open({.empty_ok = empty_ok});
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  FileHandle descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (descriptor.get() < 0) return file_error(errno, "open", path);
  StdinSource::Options options = {.empty_ok = empty_ok};
  return std::unique_ptr<Source>(std::make_unique<StdinSource>(std::move(descriptor), path, options));
}

// The names from `first` on that make one source: paths that follow each other are one.
size_t group_end(const std::vector<std::string>& names, size_t first) {
  const auto plain = [](const std::string& name) { return name != "-" && !kind_of(name) && !is_stream(name); };
  size_t end = first + 1;
  while (plain(names[first]) && end < names.size() && plain(names[end])) ++end;
  return end;
}

Opened open_group(const std::vector<std::string>& group, bool empty_ok) {
  const std::string& name = group.front();
  if (const Kind* kind = kind_of(name)) return kind->open(name);
  if (name == "-" || is_stream(name)) return open_stream(name, empty_ok);
  return FileSource::open(group, {.empty_ok = empty_ok});
}

Status check_names(const std::vector<std::string>& names) {
  if (names.empty())
    return error(Code::kInvalidArgument, "no source is named; try a text file, or - for standard input");
  if (std::count(names.begin(), names.end(), "-") > 1)
    return error(Code::kInvalidArgument, "standard input (-) is named twice, but can be read only once");
  for (const std::string& name : names) {
    if (name.empty()) return error(Code::kInvalidArgument, "a source's name is empty");
    if (const std::string_view scheme = scheme_of(name); !scheme.empty() && !kind_of(name))
      return unknown_scheme(name, scheme);
  }
  return {};
}

}  // namespace

Result<std::vector<std::unique_ptr<Source>>> open_each(const std::vector<std::string>& names) {
  STREAMVEC_RETURN_IF_ERROR(check_names(names));
  std::vector<std::unique_ptr<Source>> sources;
  for (size_t first = 0; first < names.size();) {
    const size_t end = group_end(names, first);
    const std::vector<std::string> group(names.begin() + static_cast<std::ptrdiff_t>(first),
                                         names.begin() + static_cast<std::ptrdiff_t>(end));
    const bool others = group.size() < names.size();
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, open_group(group, others));
    sources.push_back(std::move(source));
    first = end;
  }
  return sources;
}

std::unique_ptr<Source> chained(std::vector<std::unique_ptr<Source>> sources) {
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<ChainSource>(std::move(sources));
}

Result<std::unique_ptr<Source>> open_sources(const std::vector<std::string>& names) {
  STREAMVEC_ASSIGN_OR_RETURN(auto sources, open_each(names));
  return chained(std::move(sources));
}

}  // namespace streamvec
