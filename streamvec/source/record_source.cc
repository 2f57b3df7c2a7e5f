#include "streamvec/source/record_source.h"

#include <utility>

#include "streamvec/source/stdin_source.h"

namespace streamvec {
namespace {

Result<LineReader> open_lines(const Location& location) {
  if (location.path == "-") {
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<Source> stream, StdinSource::open({}));
    return LineReader(std::move(stream));
  }
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<FileSource> files, FileSource::open_files({location.path}, {}));
  return LineReader(std::move(files));
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<Source>> RecordSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  const bool tsv = location.scheme == "tsv";
  if (!location.host.empty() || location.path.empty())
    return error(Code::kInvalidArgument, name, ": a path is missing; write ", location.scheme, ":PATH");
  if (tsv)
    STREAMVEC_RETURN_IF_ERROR(location.check_keys({"text", "id", "time", "delete", "header"}));
  else
    STREAMVEC_RETURN_IF_ERROR(location.check_keys({"text", "id", "time", "delete"}));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t header, location.integer("header", 0, 0, 1));
  STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format,
                             RecordFormat::from(location, tsv ? RecordFormat::Kind::kTsv : RecordFormat::Kind::kJson));
  STREAMVEC_ASSIGN_OR_RETURN(LineReader lines, open_lines(location));
  return std::unique_ptr<Source>(new RecordSource(location.name, std::move(lines), std::move(format), header == 1));
}

RecordSource::RecordSource(std::string name, LineReader lines, RecordFormat format, bool header)
    : name_(std::move(name)), lines_(std::move(lines)), format_(std::move(format)), header_(header) {}

Result<bool> RecordSource::next(Deadline deadline, Document& document) {
  for (std::string_view line;;) {
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, lines_.next(deadline, line));
    if (!more) return false;
    if (is_blank(line) || (header_ && lines_.first_of_file())) continue;
    const Status status = format_.read(line, document);
    if (!status.ok()) {
      counts_.bad(status);
      continue;
    }
    counts_.good();
    document.cursor = lines_.place();
    return true;
  }
}

Result<int64_t> RecordSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  int64_t count = 0;
  while (count < count_max) {
    Document document;
    const Result<bool> more = next(deadline, document);
    // What came before the wait is worth handing out.
    if (!more.ok() && more.status().code() == Code::kDeadlineExceeded && count > 0) break;
    if (!more.ok()) return more.status();
    if (!*more) break;
    out.push_back(std::move(document));
    ++count;
  }
  if (count == 0 && counts_.good_count() == 0 && !resumed_)
    return error(Code::kInvalidArgument, name_, " has no record with text in it: ",
                 counts_.first_reason().empty() ? "all lines are blank" : counts_.first_reason());
  return count;
}

Status RecordSource::seek(const std::string& cursor) {
  counts_ = {};
  resumed_ = !cursor.empty();
  return lines_.seek(cursor);
}

// Records that are passed over would not be counted.
Capabilities RecordSource::capabilities() const {
  Capabilities of_lines = lines_.source().capabilities();
  of_lines.skips = false;
  return of_lines;
}

std::vector<std::string> RecordSource::notes() const {
  std::vector<std::string> lines = lines_.source().notes();
  for (std::string& line : counts_.notes(name_)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace streamvec
