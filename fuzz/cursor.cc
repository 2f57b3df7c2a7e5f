// Cursors of live streams, followed files, files and archives (source/live/place.h, tail_place.h, file_source.h,
// archive/archive_source.h): what parses is written and parsed again as the same place; any cursor may be sought, and
// reading goes on or fails with a reason.
#include "fuzz/archive_reading.h"
#include "streamvec/source/archive/warc_source.h"
#include "streamvec/source/file_source.h"
#include "streamvec/source/live/place.h"
#include "streamvec/source/tail_place.h"

namespace streamvec {
namespace {

constexpr std::string_view kText =
    "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n"
    "text\r\n\r\n";

void check_live(const std::string& cursor) {
  int64_t bytes = 0, bytes_again = 0;
  Result<Place> place = Place::parse(cursor, bytes);
  if (!place.ok()) return;
  const std::string written = place->cursor(bytes);
  const Result<Place> again = Place::parse(written, bytes_again);
  STREAMVEC_CHECK(again.ok() && bytes == bytes_again && again->cursor(bytes_again) == written);
  place->connected();
  for (uint64_t i = 0; i < 40; ++i) place->repeated({.token = "t", .hash = i});
  place->repeated({.token = "t", .lane = "a", .number = 7, .hash = 3});
}

void check_tail(const std::string& cursor, const std::string& path) {
  const Result<TailPlace> place = TailPlace::parse(cursor);
  if (!place.ok()) return;
  const Result<TailPlace> again = TailPlace::parse(place->text());
  STREAMVEC_CHECK(again.ok() && again->text() == place->text());
  STREAMVEC_CHECK(place->offset >= 0 && place->head_size <= TailPlace::kHeadBytes);
  (void)place->is_in(path);
}

void check_seek(Source& source, const std::string& cursor) {
  const Status sought = source.seek(cursor);
  if (!sought.ok()) return;
  STREAMVEC_CHECK(read_documents(source).size() <= 2);
}

}  // namespace

FuzzStart fuzz_start() {
  Place place;
  place.repeated({.token = "7", .hash = 1});
  place.repeated({.token = "8", .lane = "a", .number = 5, .hash = 2});
  const TailPlace tail{.inode = 3,
                       .offset = 20,
                       .mtime_ns = 5,
                       .bytes_read = 20,
                       .head_size = 4,
                       .last_size = 4,
                       .head_sum = "0123456789abcdef",
                       .last_sum = "fedcba9876543210"};
  return {.seeds = {place.cursor(100), "{\"bytes\":1}", tail.text(), "0 0 0 0", "0 8 3 8",
                    "{\"file\":0,\"path\":\"@\",\"offset\":4,\"size\":104,\"mtime_ns\":1,\"bytes_read\":4}",
                    "{\"at\":\"0 10 0 10\",\"path\":\"@\",\"size\":104,\"mtime_ns\":1}"},
          .words = {"\"lanes\":{", "\"recent\":[", "\"hashes\":[", "\"token\":", "1e300", "-1", "9223372036854775807",
                    "18446744073709551615", "null"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  static const MemoryFile file(kText);
  static const auto files = FileSource::open({file.path()});
  static const auto archive = WarcSource::open("warc:" + file.path());
  STREAMVEC_CHECK(files.ok() && archive.ok());
  std::string cursor(reinterpret_cast<const char*>(data), size);
  check_live(cursor);
  check_tail(cursor, file.path());
  // "@" stands for the file's own path, which chance would not find; size and time may be its own, too.
  if (const size_t at = cursor.find("\"@\""); at != std::string::npos) cursor.replace(at + 1, 1, file.path());
  check_seek(**files, cursor);
  check_seek(**archive, cursor);
  return 0;
}
