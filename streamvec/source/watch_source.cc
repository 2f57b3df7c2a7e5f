#include "streamvec/source/watch_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/source/line_reader.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::chrono::milliseconds kLookAtLeast{500};  // how often to look when no event comes
constexpr int64_t kForgottenS = 60;  // a file is complete after so long, although nobody told of its end
constexpr size_t kGoneMax = 10'000, kProblemsMax = 10;

std::string to_text(const Json& json) {
  return json_text(json);
}

// The cursor of a document: "FILES BYTES INNER", files and bytes read before and the place in this one.
struct ShortCursor {
  int64_t files = 0, bytes = 0;
  std::string inner;

  std::string text() const { return std::to_string(files) + " " + std::to_string(bytes) + " " + inner; }
  static std::optional<ShortCursor> parse(const std::string& text) {
    ShortCursor cursor;
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    for (int64_t* number : {&cursor.files, &cursor.bytes}) {
      const auto [next, failure] = std::from_chars(at, end, *number);
      if (failure != std::errc() || next == end || *next != ' ' || *number < 0) return std::nullopt;
      at = next + 1;
    }
    cursor.inner.assign(at, end);
    return cursor;
  }
};

}  // namespace

struct WatchSource::Found {
  std::string name, identity;
  int64_t size = 0, mtime_ns = 0;

  auto order() const { return std::tie(mtime_ns, name); }
  bool operator==(const Found&) const = default;

  static std::optional<Found> of(const std::string& directory, const std::string& name) {
    struct statx info;
    const std::string path = directory + "/" + name;
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &info) != 0 || !S_ISREG(info.stx_mode))
      return std::nullopt;
    Found found;
    found.name = name;
    found.size = static_cast<int64_t>(info.stx_size);
    found.mtime_ns = info.stx_mtime.tv_sec * int64_t{1'000'000'000} + info.stx_mtime.tv_nsec;
    found.identity = std::to_string(info.stx_ino) + ".";
    // Inodes are used again; without a time of birth the name has to tell.
    if ((info.stx_mask & STATX_BTIME) != 0)
      found.identity += std::to_string(info.stx_btime.tv_sec) + "." + std::to_string(info.stx_btime.tv_nsec);
    else
      found.identity += Checksum::of(name);
    return found;
  }
};

// The file being read, as pieces of text or as records.
class WatchSource::OpenFile {
 public:
  static Result<std::unique_ptr<OpenFile>> open(const std::string& directory, const Found& found,
                                                const Location& location) {
    STREAMVEC_ASSIGN_OR_RETURN(RecordFormat format, RecordFormat::from(location));
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<FileSource> files,
                               FileSource::open_files({directory + "/" + found.name}, {.empty_ok = true}));
    auto file = std::make_unique<OpenFile>();
    file->found = found;
    file->format_ = std::move(format);
    if (file->format_.kind() == RecordFormat::Kind::kText)
      file->pieces_ = std::move(files);
    else
      file->lines_.emplace(std::move(files));
    return file;
  }

  // False at the end.
  Result<bool> next(Document& document, RecordCounts& counts) {
    if (pieces_ != nullptr) return next_piece(document, counts);
    for (std::string_view line;;) {
      STREAMVEC_ASSIGN_OR_RETURN(const bool more, lines_->next(Deadline::never(), line));
      if (!more) return false;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (const Status status = format_.read(line, document); !status.ok()) {
        counts.bad(status);
        continue;
      }
      counts.good();
      document.cursor = lines_->place();
      return true;
    }
  }
  Status seek(const std::string& inner) { return pieces_ != nullptr ? pieces_->seek(inner) : lines_->seek(inner); }
  int64_t bytes_read() const { return pieces_ != nullptr ? pieces_->bytes_read() : lines_->source().bytes_read(); }

  Found found;

 private:
  Result<bool> next_piece(Document& document, RecordCounts& counts) {
    std::vector<Document> one;
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, pieces_->read(1, Deadline::never(), one));
    if (count == 0) return false;
    document = std::move(one[0]);
    document.time_s = found.mtime_ns / 1'000'000'000;
    counts.good();
    return true;
  }

  RecordFormat format_;
  std::unique_ptr<FileSource> pieces_;
  std::optional<LineReader> lines_;
};

Result<std::unique_ptr<Source>> WatchSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(RecordFormat::check_keys(location, {"settle"}));
  STREAMVEC_RETURN_IF_ERROR(RecordFormat::from(location).status());
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t settle_s, location.integer("settle", 2, 0, 86'400));
  if (!location.host.empty() || location.path.empty())
    return error(Code::kInvalidArgument, name, ": a directory is missing; write watch:DIR");
  std::error_code failure;
  if (!fs::is_directory(location.path, failure))
    return failure || !fs::exists(location.path, failure)
               ? file_error(ENOENT, "open directory", location.path)
               : error(Code::kInvalidArgument, location.path, " is not a directory; a file is followed by tail:");
  return std::unique_ptr<Source>(new WatchSource(location.name, location.path, settle_s, location));
}

WatchSource::WatchSource(std::string name, std::string directory, int64_t settle_s, const Location& location)
    : name_(std::move(name)),
      directory_(std::move(directory)),
      settle_s_(settle_s),
      location_(location),
      watch_(directory_) {}

WatchSource::~WatchSource() = default;

void WatchSource::reset() {
  file_.reset();
  waiting_.clear();
  finished_.clear();
  gone_.clear();
  files_read_ = bytes_before_ = 0;
}

int64_t WatchSource::bytes_read() const {
  return bytes_before_ + (file_ != nullptr ? file_->bytes_read() : 0);
}

void WatchSource::note(const std::string& line) {
  if (++problems_count_ <= static_cast<int64_t>(kProblemsMax)) problems_.push_back(line);
}

std::vector<std::string> WatchSource::notes() const {
  std::vector<std::string> lines = counts_.notes(name_);
  lines.insert(lines.end(), problems_.begin(), problems_.end());
  if (problems_count_ > static_cast<int64_t>(kProblemsMax))
    lines.push_back(name_ + ": " + std::to_string(problems_count_) + " files had problems");
  return lines;
}

std::vector<WatchSource::Found> WatchSource::list() const {
  std::vector<Found> files;
  std::error_code failure;
  for (fs::directory_iterator entry(directory_, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    if (std::optional<Found> found = Found::of(directory_, name)) files.push_back(std::move(*found));
  }
  return files;
}

void WatchSource::look(const std::vector<DirectoryWatch::Event>& events) {
  using Kind = DirectoryWatch::Event::Kind;
  for (const DirectoryWatch::Event& event : events) {
    being_written_.erase(event.name);
    closed_.erase(event.name);
    if (event.kind == Kind::kWritten) being_written_.insert(event.name);
    if (event.kind == Kind::kComplete) closed_.insert(event.name);
    if (event.kind == Kind::kLost) {
      being_written_.clear();
      closed_.clear();
    }
  }
}

bool WatchSource::is_complete(const Found& file) const {
  if (closed_.contains(file.name)) return true;
  const int64_t still_s = being_written_.contains(file.name) ? std::max(settle_s_, kForgottenS) : settle_s_;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count() - file.mtime_ns >= still_s * 1'000'000'000;
}

// Keeps memory bounded: of the files read, those that are gone are remembered up to a number.
void WatchSource::forget_gone(const std::vector<Found>& files) {
  std::set<std::string_view> there;
  for (const Found& file : files) there.insert(file.identity);
  for (auto& [identity, finished] : finished_) {
    if (!finished.there || there.contains(identity)) continue;
    finished.there = false;
    gone_.push_back(identity);
  }
  for (; gone_.size() > kGoneMax; gone_.pop_front()) finished_.erase(gone_.front());
}

// Lists the complete files that were not read: once for all of them, since a directory may hold very many.
void WatchSource::find_waiting() {
  std::vector<DirectoryWatch::Event> events;
  watch_.await(Deadline::after({}), std::chrono::milliseconds(0), events);
  look(events);
  std::vector<Found> files = list();
  forget_gone(files);
  std::erase_if(files, [&](const Found& file) { return finished_.contains(file.identity) || !is_complete(file); });
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.order() < b.order(); });
  waiting_.assign(std::make_move_iterator(files.begin()), std::make_move_iterator(files.end()));
}

// Opens the first complete file that was not read, or finds that it is not what it was; false when there is none.
bool WatchSource::open_next() {
  if (waiting_.empty()) find_waiting();
  if (waiting_.empty()) return false;
  const Found first = std::move(waiting_.front());
  waiting_.pop_front();
  if (Found::of(directory_, first.name) != first) return true;  // replaced, written to or gone: the next list has it
  closed_.erase(first.name);
  Result<std::unique_ptr<OpenFile>> file = OpenFile::open(directory_, first, location_);
  if (file.ok()) {
    file_ = std::move(*file);
    return true;
  }
  if (file.status().code() == Code::kNotFound) return true;  // it went away; look again
  note(file.status().message());
  finished_[first.identity] = {files_read_++};
  return true;
}

void WatchSource::finish_file(const std::string& problem) {
  if (!problem.empty()) note(problem);
  bytes_before_ += file_->bytes_read();
  finished_[file_->found.identity] = {files_read_++};
  file_.reset();
}

Result<int64_t> WatchSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  int64_t count = 0;
  for (;;) {
    while (file_ != nullptr && count < count_max) {
      Document document;
      const Result<bool> more = file_->next(document, counts_);
      if (!more.ok() || !*more) {
        finish_file(more.ok() ? "" : more.status().message());
        break;
      }
      document.cursor = ShortCursor{files_read_, bytes_before_, document.cursor}.text();
      out.push_back(std::move(document));
      ++count;
    }
    if (count >= count_max) return count;
    if (file_ != nullptr || open_next()) continue;
    if (count > 0) return count;
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "no file came into ", directory_, " in time");
    std::vector<DirectoryWatch::Event> events;
    watch_.await(deadline, kLookAtLeast, events);
    look(events);
  }
}

std::string WatchSource::saved(const std::string& cursor) const {
  const std::optional<ShortCursor> at = ShortCursor::parse(cursor);
  if (!at) return cursor;
  Json saved = {{"count", at->files}, {"bytes", at->bytes}, {"inner", at->inner}, {"current", ""}};
  saved["files"] = Json::array();
  if (file_ != nullptr && at->files == files_read_) saved["current"] = file_->found.identity;
  for (const auto& [identity, finished] : finished_) {
    if (finished.number < at->files) saved["files"].push_back(identity);
    if (finished.number == at->files) saved["current"] = identity;
  }
  return to_text(saved);
}

Status WatchSource::seek(const std::string& cursor) {
  if (cursor.empty()) {
    reset();
    return {};
  }
  const Json json = parse_json(saved(cursor));
  const auto field = [&](const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); };
  bool good = field("count").is_number_unsigned() && field("bytes").is_number_unsigned() &&
              field("inner").is_string() && field("current").is_string() && field("files").is_array();
  for (const Json& identity : good ? json["files"] : Json::array()) good = good && identity.is_string();
  if (!good) return error(Code::kInvalidArgument, "not a cursor of a watched directory: ", cursor.substr(0, 200));
  reset();
  files_read_ = json["count"];
  bytes_before_ = json["bytes"];
  for (const Json& identity : json["files"]) finished_[identity] = {-1};
  return resume(json["current"], json["inner"]);
}

// Goes on inside of the file `identity`, wherever it lies now.
Status WatchSource::resume(const std::string& identity, const std::string& inner) {
  const std::vector<Found> files = list();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const Found& file) { return file.identity == identity; });
  if (found == files.end()) {
    note(name_ + ": the file being read when the run stopped is gone; what was left of it is lost");
    finished_[identity] = {files_read_++};
    return {};
  }
  Result<std::unique_ptr<OpenFile>> file = OpenFile::open(directory_, *found, location_);
  if (!file.ok()) return file.status();
  // The name, time or size may have changed; the identity says that it is the same file.
  const size_t brace = inner.find('{');
  Json place = parse_json(brace == std::string::npos ? "" : inner.substr(brace));
  if (!place.is_object())
    return error(Code::kInvalidArgument, "not a cursor of a watched directory: ", inner.substr(0, 200));
  place["path"] = directory_ + "/" + found->name;
  place["size"] = found->size;
  place["mtime_ns"] = found->mtime_ns;
  if (const Status status = (*file)->seek(inner.substr(0, brace) + to_text(place)); !status.ok()) {
    if (status.code() == Code::kInvalidArgument) return status;
    note(status.message());
    finished_[identity] = {files_read_++};
    return {};
  }
  file_ = std::move(*file);
  return {};
}

}  // namespace streamvec
