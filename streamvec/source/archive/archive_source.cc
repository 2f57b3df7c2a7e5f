#include "streamvec/source/archive/archive_source.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/source/file_source.h"

namespace streamvec {
namespace {

using Json = nlohmann::json;
constexpr size_t kDamagesMax = 10;

// "FILE STORED SKIP BYTES_READ"
struct Cursor {
  int64_t file = 0, stored = 0, skip = 0, bytes_read = 0;

  std::string text() const {
    return std::to_string(file) + " " + std::to_string(stored) + " " + std::to_string(skip) + " " +
           std::to_string(bytes_read);
  }
  static std::optional<Cursor> parse(std::string_view text) {
    Cursor cursor;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int64_t* number : {&cursor.file, &cursor.stored, &cursor.skip, &cursor.bytes_read}) {
      const auto [next, failure] = std::from_chars(at, end, *number);
      if (failure != std::errc() || *number < 0) return std::nullopt;
      const bool last = number == &cursor.bytes_read;
      if (last != (next == end) || (!last && *next != ' ')) return std::nullopt;
      at = next + (last ? 0 : 1);
    }
    return cursor;
  }
};

struct Saved {
  Cursor cursor;
  std::optional<FileStamp> stamp;
};

Result<Saved> parse_saved(const std::string& text) {
  if (const std::optional<Cursor> cursor = Cursor::parse(text)) return Saved{*cursor, std::nullopt};
  const Json json = parse_json(text);
  const auto field = [&](const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); };
  if (field("at").is_string() && field("path").is_string() && field("size").is_number_integer() &&
      field("mtime_ns").is_number_integer())
    if (const std::optional<Cursor> cursor = Cursor::parse(json["at"].get<std::string>()))
      return Saved{*cursor, FileStamp{json["path"], json["size"], json["mtime_ns"]}};
  return error(Code::kInvalidArgument, "not a cursor of an archive: ", text.substr(0, 200));
}

}  // namespace

ArchiveSource::ArchiveSource(std::string name, std::vector<FileStamp> files)
    : name_(std::move(name)), files_(std::move(files)) {
  for (const FileStamp& file : files_) bytes_total_ += file.size;
}

std::vector<std::string> ArchiveSource::notes() const {
  std::vector<std::string> lines = counts_.notes(name_);
  lines.insert(lines.end(), damages_.begin(), damages_.end());
  return lines;
}

int64_t ArchiveSource::bytes_before() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < index_ && i < files_.size(); ++i) bytes += files_[i].size;
  return bytes;
}

Status ArchiveSource::open_file(ArchiveFile::Place place) {
  STREAMVEC_RETURN_IF_ERROR(begin_file(files_[index_].path));
  STREAMVEC_ASSIGN_OR_RETURN(ArchiveFile file, ArchiveFile::open(files_[index_].path, place));
  file_.emplace(std::move(file));
  return {};
}

Result<bool> ArchiveSource::next_document(Document& document) {
  for (; index_ < files_.size(); ++index_, file_.reset(), bytes_read_ = bytes_before()) {
    if (!file_) STREAMVEC_RETURN_IF_ERROR(open_file({}));
    for (bool more = true; more;) {
      const Result<bool> found = next(*file_, document);
      if (found.ok() && !*found) break;
      if (found.ok()) {
        const ArchiveFile::Place place = file_->place();
        bytes_read_ = bytes_before() + std::max(file_->stored_read(), place.stored);
        counts_.good();
        document.cursor = Cursor{static_cast<int64_t>(index_), place.stored, place.skip, bytes_read_}.text();
        return true;
      }
      if (found.status().code() != Code::kDataLoss) return found.status();
      if (damages_.size() < kDamagesMax) damages_.push_back(found.status().message());
      STREAMVEC_ASSIGN_OR_RETURN(more, file_->recover());
    }
  }
  return false;
}

Result<int64_t> ArchiveSource::read(int64_t count_max, Deadline, std::vector<Document>& out) {
  int64_t count = 0;
  for (; count < count_max; ++count) {
    Document document;
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, next_document(document));
    if (!more) break;
    out.push_back(std::move(document));
  }
  if (count == 0 && counts_.good_count() == 0 && !resumed_)
    return error(Code::kInvalidArgument, name_, " has no text in it",
                 counts_.first_reason().empty() ? "" : ": " + counts_.first_reason());
  return count;
}

std::string ArchiveSource::saved(const std::string& cursor) const {
  const std::optional<Cursor> at = Cursor::parse(cursor);
  if (!at || at->file >= static_cast<int64_t>(files_.size())) return cursor;
  const FileStamp& file = files_[static_cast<size_t>(at->file)];
  const Json json = {{"at", cursor}, {"path", file.path}, {"size", file.size}, {"mtime_ns", file.mtime_ns}};
  return json_text(json);
}

Status ArchiveSource::seek(const std::string& cursor) {
  file_.reset();
  index_ = 0;
  bytes_read_ = 0;
  counts_ = {};
  damages_.clear();
  resumed_ = !cursor.empty();
  if (cursor.empty()) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const Saved at, parse_saved(cursor));
  const auto file = static_cast<size_t>(at.cursor.file);
  if (file >= files_.size())
    return error(Code::kFailedPrecondition, "the run stopped in file ", file + 1, ", but there are only ",
                 files_.size(), " now; name the same files in the same order, or start anew");
  STREAMVEC_ASSIGN_OR_RETURN(const FileStamp now, FileStamp::of(files_[file].path));
  if (at.stamp) STREAMVEC_RETURN_IF_ERROR(check_unchanged(*at.stamp, now));
  index_ = file;
  STREAMVEC_RETURN_IF_ERROR(open_file({at.cursor.stored, at.cursor.skip}));
  bytes_read_ = at.cursor.bytes_read;
  return {};
}

}  // namespace streamvec
