#include "streamvec/source/archive/warc_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "streamvec/source/archive/header_lines.h"
#include "streamvec/source/archive/http_message.h"
#include "streamvec/source/file_source.h"
#include "streamvec/source/location.h"
#include "streamvec/source/time_text.h"
#include "streamvec/text/charset.h"

namespace streamvec {
namespace {

constexpr size_t kHeaderBytesMax = size_t{64} << 10;
constexpr int64_t kContentBytesMax = int64_t{8} << 20;
constexpr std::string_view kMark = "WARC/1.";

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

bool is_html(std::string_view content_type) {
  return contains(content_type, "html");
}

bool is_plain_text(std::string_view content_type) {
  return contains(content_type, "text/plain");
}

size_t line_ends(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && (text[count] == '\r' || text[count] == '\n')) ++count;
  return count;
}

}  // namespace

struct WarcSource::Header {
  size_t size = 0;  // bytes, with its empty line
  int64_t length = 0;
  std::string type, uri, content_type;
  int64_t time_s = 0;

  bool wanted() const {
    return type == "conversion" || type == "resource" || (type == "response" && !contains(content_type, "dns"));
  }
};

Result<std::unique_ptr<Source>> WarcSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(location.check_keys({}));
  if (!location.host.empty() || location.path.empty())
    return error(Code::kInvalidArgument, name, ": a path is missing; write warc:PATH");
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<FileStamp> files, list_files({location.path}));
  return std::unique_ptr<Source>(new WarcSource(location.name, std::move(files)));
}

Status WarcSource::begin_file(const std::string& /*path*/) {
  goings_back_ = 0;
  return {};
}

// The header of the record that comes next; false at the end of the file. kInvalidArgument: none begins here.
Result<bool> WarcSource::read_header(ArchiveFile& file, Header& header) {
  std::string_view text;
  size_t end = std::string_view::npos;
  for (size_t size = 2048; end == std::string_view::npos; size *= 2) {
    STREAMVEC_ASSIGN_OR_RETURN(text, file.peek(std::min(size, kHeaderBytesMax)));
    if (const size_t blank = line_ends(text); blank > 0) {
      file.take(blank);
      size = 1024;
      continue;
    }
    if (text.empty()) return false;
    if (!text.starts_with(kMark.substr(0, std::min(kMark.size(), text.size()))))
      return error(Code::kInvalidArgument, "no WARC record begins at byte ", file.place().stored, " of the file");
    end = header_end(text.substr(0, kHeaderBytesMax));
    if (end == std::string_view::npos && (text.size() < size || size >= kHeaderBytesMax))
      return error(Code::kInvalidArgument, "a WARC header without an end at byte ", file.place().stored);
  }
  const std::string_view fields = text.substr(0, end);
  const std::string_view length = header_field(fields, "content-length");
  const auto parsed = std::from_chars(length.data(), length.data() + length.size(), header.length);
  if (parsed.ec != std::errc() || parsed.ptr != length.data() + length.size() || header.length < 0)
    return error(Code::kInvalidArgument, "a WARC record without a length at byte ", file.place().stored);
  header.size = end;
  header.type = header_field(fields, "warc-type");
  header.uri = header_field(fields, "warc-target-uri");
  if (header.uri.size() > 2 && header.uri.front() == '<') header.uri = header.uri.substr(1, header.uri.size() - 2);
  header.content_type = header_field(fields, "content-type");
  header.time_s = 0;
  if (const Result<int64_t> time = parse_time(header_field(fields, "warc-date")); time.ok()) header.time_s = *time;
  return true;
}

// Passes `bytes` and what follows up to the next record.
Status WarcSource::resynchronise(ArchiveFile& file, size_t bytes) {
  STREAMVEC_RETURN_IF_ERROR(file.skip(static_cast<int64_t>(bytes)).status());
  for (bool first = true;; first = false) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view text, file.peek(kHeaderBytesMax));
    if (text.empty() || (first && text.starts_with(kMark))) return {};
    const size_t found = text.find(std::string("\n") + std::string(kMark));
    if (found != std::string_view::npos) {
      file.take(found + 1);
      return {};
    }
    // The mark may have begun in the last bytes.
    const size_t kept = text.size() < kHeaderBytesMax ? 0 : kMark.size();
    file.take(text.size() - kept);
  }
}

Result<bool> WarcSource::next(ArchiveFile& file, Document& document) {
  for (;;) {
    Header header;
    const Result<bool> found = read_header(file, header);
    if (!found.ok()) {
      counts_.bad(found.status());
      if (found.status().code() != Code::kInvalidArgument) return found.status();
      STREAMVEC_RETURN_IF_ERROR(resynchronise(file, 1));
      continue;
    }
    if (!*found) return false;
    if (header.wanted() && header.length <= kContentBytesMax) {
      STREAMVEC_ASSIGN_OR_RETURN(const bool is_document, read_record(file, header, document));
      if (is_document) return true;
      continue;
    }
    if (header.wanted())
      counts_.bad(error(Code::kResourceExhausted, "a record of ", header.length, " bytes; the limit is 8 MB"));
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, pass_record(file, header));
    if (!more) return false;
  }
}

// False at the end of the file. A length beyond that is wrong, and records may follow; the number of times that this is
// tried is bounded, so that a file of such headers is not read again and again.
Result<bool> WarcSource::pass_record(ArchiveFile& file, const Header& header) {
  constexpr int kGoingsBackMax = 16;
  const ArchiveFile::Place begin = file.place();
  STREAMVEC_ASSIGN_OR_RETURN(const bool whole, file.skip(static_cast<int64_t>(header.size)));
  if (!whole) return false;
  STREAMVEC_ASSIGN_OR_RETURN(const bool passed, file.skip(header.length));
  if (passed) return true;
  if (++goings_back_ > kGoingsBackMax) return false;
  STREAMVEC_RETURN_IF_ERROR(file.seek(begin));
  STREAMVEC_RETURN_IF_ERROR(resynchronise(file, header.size));
  return true;
}

// False when it is no document: bad, or without text.
Result<bool> WarcSource::read_record(ArchiveFile& file, const Header& header, Document& document) {
  constexpr size_t kLineEnds = 4;
  const size_t size = header.size + static_cast<size_t>(header.length);
  // The byte after the record is asked for so that a compressed record's sum has been checked.
  const Result<std::string_view> text = file.peek(size + kLineEnds + 1);
  if (!text.ok()) {
    counts_.bad(text.status());
    return text.status();
  }
  const std::string_view rest = text->substr(std::min(size, text->size()));
  const size_t after = line_ends(rest.substr(0, kLineEnds));
  if (text->size() < size || (after == 0 && !rest.empty())) {
    counts_.bad(error(Code::kInvalidArgument, "a record that is not as long as it says at byte ", file.place().stored));
    STREAMVEC_RETURN_IF_ERROR(resynchronise(file, std::min(header.size, text->size())));
    return false;
  }
  const Status status = make_document(header, text->substr(header.size, size - header.size), document);
  file.take(size + after);
  if (status.ok()) return true;
  counts_.bad(status);
  return false;
}

Status WarcSource::make_document(const Header& header, std::string_view content, Document& document) {
  document.id = header.uri;
  document.time_s = header.time_s;
  document.deleted = false;
  document.text.clear();
  if (header.type == "conversion") {
    document.text = to_utf8(content, "utf-8", false, utf8_);
  } else if (contains(header.content_type, "application/http")) {
    STREAMVEC_ASSIGN_OR_RETURN(const HttpMessage response, parse_http(content, kContentBytesMax, body_));
    if (response.status / 100 != 2) return error(Code::kNotFound, "a response with status ", response.status);
    STREAMVEC_RETURN_IF_ERROR(make_page(response.body, response.content_type, document));
  } else {
    STREAMVEC_RETURN_IF_ERROR(make_page(content, header.content_type, document));
  }
  const bool blank = document.text.find_first_not_of(" \t\r\n") == std::string::npos;
  return blank ? error(Code::kNotFound, "a page without text") : Status();
}

Status WarcSource::make_page(std::string_view body, std::string_view content_type, Document& document) {
  if (is_plain_text(content_type)) {
    document.text = to_utf8(body, content_type, false, utf8_);
    return {};
  }
  if (!is_html(content_type))
    return error(Code::kNotFound,
                 "a page that is neither HTML nor plain text: ", std::string(content_type.substr(0, 80)));
  extractor_.extract(to_utf8(body, content_type, true, utf8_), article_);
  if (article_.text.empty()) return {};
  document.text = article_.title.empty() ? article_.text : article_.title + "\n" + article_.text;
  if (article_.time_s != 0) document.time_s = article_.time_s;
  return {};
}

}  // namespace streamvec
