#include "streamvec/source/file_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/json.h"
#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Text is read in blocks that lie at multiples of this in the decoded file, whatever was read before: so bytes_read()
// after a document is the same in a resumed run.
constexpr size_t kBlockBytes = kPieceBytes;

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

// Each directory once: `seen` are those that were entered. Links to others wait in `links` until all that lies here has
// been.
Status add_files_below(const std::string& directory, std::set<fs::path>& seen, std::vector<std::string>& links,
                       std::vector<std::string>& paths) {
  std::error_code failure;
  if (!seen.insert(fs::canonical(directory, failure)).second) return {};
  fs::directory_iterator entry(directory, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;  // a link that leads nowhere is neither
    if (is_hidden(entry->path())) continue;
    if (entry->is_regular_file(unknown)) paths.push_back(entry->path().string());
    if (!entry->is_directory(unknown)) continue;
    if (entry->is_symlink(unknown))
      links.push_back(entry->path().string());
    else
      STREAMVEC_RETURN_IF_ERROR(add_files_below(entry->path().string(), seen, links, paths));
  }
  return failure ? file_error(failure.value(), "read directory", directory) : Status();
}

Result<std::vector<std::string>> files_below(const std::string& directory) {
  std::set<fs::path> seen;
  std::vector<std::string> paths, to_enter = {directory};
  while (!to_enter.empty()) {
    std::vector<std::string> links;
    for (const std::string& each : to_enter) STREAMVEC_RETURN_IF_ERROR(add_files_below(each, seen, links, paths));
    std::sort(links.begin(), links.end());
    to_enter = std::move(links);
  }
  if (paths.empty())
    return error(Code::kNotFound, "directory ", directory, " has no files in it (those starting with '.' are skipped)");
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<FileStamp> openable(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(FileStamp stamp, FileStamp::of(path));
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return file_error(errno, "open", path);
  return stamp;
}

// Paths are any bytes and JSON is UTF-8: what is not UTF-8 is replaced, here and where it is compared.
std::string to_text(const Json& json) {
  return json_text(json);
}

// A path as it comes back from JSON.
std::string as_json_has_it(const std::string& path) {
  return read_back(path).get<std::string>();
}

struct Cursor {
  int64_t file = 0;
  std::string path;
  int64_t offset = 0, size = 0, mtime_ns = 0, bytes_read = 0;
};

Result<Cursor> parse_cursor(const std::string& text) {
  const Json json = parse_json(text);
  const auto field = [&](const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); };
  bool good = field("path").is_string();
  for (const char* key : {"file", "offset", "size", "mtime_ns", "bytes_read"})
    good = good && field(key).is_number_integer();
  if (good) {
    Cursor cursor = {json["file"], json["path"], json["offset"], json["size"], json["mtime_ns"], json["bytes_read"]};
    if (cursor.file >= 0 && cursor.offset >= 0 && cursor.bytes_read >= 0) return cursor;
  }
  return error(Code::kInvalidArgument, "not a cursor of files: ", text.substr(0, 200));
}

}  // namespace

Status check_unchanged(const FileStamp& then, const FileStamp& now) {
  if (to_text(then.path) != to_text(now.path))
    return error(Code::kFailedPrecondition, "the run stopped in ", then.path, ", but that file is now ", now.path,
                 "; name the same files in the same order, or start anew");
  if (then.size != now.size)
    return error(Code::kFailedPrecondition, now.path, " has changed since the run stopped: it had ", then.size,
                 " bytes and has ", now.size, "; restore it, or start anew");
  if (then.mtime_ns != now.mtime_ns)
    return error(Code::kFailedPrecondition, now.path, " has changed since the run stopped: written at ", then.mtime_ns,
                 " and now at ", now.mtime_ns, " (nanoseconds since 1970); restore it, or start anew");
  return {};
}

std::string contents_of(const std::vector<FileStamp>& files) {
  std::string all;
  for (const FileStamp& file : files) all += file.path + '\0' + std::to_string(file.size) + '\0';
  return Checksum::of(all);
}

Result<std::vector<FileStamp>> list_files(const std::vector<std::string>& paths) {
  std::vector<FileStamp> files;
  for (const std::string& path : paths) {
    std::vector<std::string> found = {path};
    std::error_code unknown;
    if (fs::is_directory(path, unknown)) {
      STREAMVEC_ASSIGN_OR_RETURN(found, files_below(path));
    }
    for (const std::string& file : found) {
      STREAMVEC_ASSIGN_OR_RETURN(FileStamp stamp, openable(file));
      files.push_back(std::move(stamp));
    }
  }
  return files;
}

Result<std::unique_ptr<Source>> FileSource::open(const std::vector<std::string>& paths, Options options) {
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<FileSource> source, open_files(paths, options));
  return std::unique_ptr<Source>(std::move(source));
}

Result<std::unique_ptr<FileSource>> FileSource::open_files(const std::vector<std::string>& paths, Options options) {
  STREAMVEC_CHECK(!paths.empty());
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<FileStamp> files, list_files(paths));
  return std::unique_ptr<FileSource>(new FileSource(std::move(files), options));
}

FileSource::FileSource(std::vector<FileStamp> files, Options options)
    : files_(std::move(files)), options_(options), ends_(files_.size(), -1), buffer_(2 * kBlockBytes + kPieceBytes) {
  for (const FileStamp& file : files_) bytes_total_ += file.size;
}

std::string FileSource::name() const {
  return files_.size() == 1 ? files_[0].path
                            : files_[0].path + " and " + std::to_string(files_.size() - 1) + " more files";
}

std::vector<std::string> FileSource::keys() const {
  constexpr const char* kAllFiles = "files";
  if (!in_stream_) return {name()};
  return alone_ ? std::vector<std::string>{kAllFiles, name()} : std::vector<std::string>{name(), kAllFiles};
}

std::vector<std::string> FileSource::notes() const {
  std::vector<std::string> lines;
  for (const size_t index : empty_) lines.push_back(files_[index].path + " is empty");
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  if (!read_before_.empty() && !new_text_ && index_ == files_.size())
    lines.push_back(name() + ": nothing is new since the last run");
  return lines;
}

void FileSource::rewind() {
  close_file();
  index_ = 0;
  bytes_before_ = bytes_read_ = 0;
  anything_read_ = new_text_ = false;
  read_before_.clear();
  notes_.clear();
}

Status FileSource::open_file() {
  STREAMVEC_ASSIGN_OR_RETURN(DecodedFile file, DecodedFile::open(files_[index_].path));
  file_.emplace(std::move(file));
  return {};
}

void FileSource::close_file() {
  file_.reset();
  file_ended_ = false;
  begin_ = end_ = 0;
  offset_ = 0;
}

// Until a whole piece and the byte after it are there, or the file ends.
Status FileSource::fill() {
  while (!file_ended_ && end_ - begin_ <= kPieceBytes) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    STREAMVEC_ASSIGN_OR_RETURN(const size_t got, file_->read(std::span(buffer_).subspan(end_, kBlockBytes)));
    file_ended_ = got < kBlockBytes;
    end_ += got;
  }
  return {};
}

void FileSource::take(size_t count) {
  begin_ += count;
  offset_ += static_cast<int64_t>(count);
}

Status FileSource::check_beginning() {
  STREAMVEC_RETURN_IF_ERROR(check_text(buffered(), files_[index_].path));
  take(utf8_mark_bytes(buffered()));
  return {};
}

Result<bool> FileSource::next(Document& document) {
  for (; index_ < files_.size(); bytes_before_ += files_[index_++].size, close_file(), bytes_read_ = bytes_before_) {
    if (!file_) {
      STREAMVEC_ASSIGN_OR_RETURN(const int64_t begin, begin_of_file());
      if (begin < 0) continue;
      Status opened = open_file();
      if (opened.ok() && begin > 0) opened = skip_to(begin);
      if (!opened.ok()) {
        close_file();
        return opened;
      }
    }
    STREAMVEC_RETURN_IF_ERROR(fill());
    const bool beginning = offset_ == 0;
    if (beginning) STREAMVEC_RETURN_IF_ERROR(check_beginning());
    if (buffered().empty()) {
      if (beginning) empty_.insert(index_);
      ends_[index_] = offset_;
      continue;
    }
    const size_t size = buffered().size() > kPieceBytes ? piece_bytes(buffered()) : buffered().size();
    document.text = buffered().substr(0, size);
    take(size);
    bytes_read_ = bytes_before_ + file_->stored_read();
    anything_read_ = new_text_ = true;
    document.cursor = cursor_at(offset_, bytes_read_);
    return true;
  }
  return false;
}

Result<int64_t> FileSource::read(int64_t count_max, Deadline, std::vector<Document>& out) {
  int64_t count = 0;
  for (Document document; count < count_max; ++count) {
    STREAMVEC_ASSIGN_OR_RETURN(const bool more, next(document));
    if (!more) break;
    out.push_back(std::move(document));
  }
  if (count == 0 && !anything_read_ && !options_.empty_ok)
    return error(Code::kInvalidArgument, name(), files_.size() == 1 ? " is empty" : " are all empty",
                 "; name a file with text in it");
  return count;
}

std::string FileSource::cursor_at(int64_t offset, int64_t bytes_read) const {
  const FileStamp& file = files_[index_];
  Json cursor = {{"file", index_},    {"path", file.path},         {"offset", offset},
                 {"size", file.size}, {"mtime_ns", file.mtime_ns}, {"bytes_read", bytes_read}};
  if (in_stream_) cursor["whole"] = at_file_end();
  return to_text(cursor);
}

// Where the file is to be read from in a stream; -1: not at all.
Result<int64_t> FileSource::begin_of_file() {
  const FileStamp& now = files_[index_];
  const auto found = read_before_.find(as_json_has_it(now.path));
  if (found == read_before_.end()) return 0;
  const ReadFile& before = found->second;
  if (now.size == before.stamp.size && now.mtime_ns == before.stamp.mtime_ns) {
    ends_[index_] = before.offset;
    return before.whole ? -1 : before.offset;
  }
  if (now.size > before.stamp.size) return before.offset;
  if (!before.whole) return check_unchanged(before.stamp, now);
  notes_.push_back(now.path + " is another file than when it was read, and is read anew");
  return 0;
}

// The cursor, and beside it the files that were read before.
std::string FileSource::saved(const std::string& cursor) const {
  Json saved = parse_json(cursor);
  if (!in_stream_ || !saved.is_object() || !saved.value("file", Json()).is_number_integer()) return cursor;
  std::map<std::string, ReadFile> read = read_before_;
  const auto last = std::min(files_.size(), saved["file"].get<size_t>());
  for (size_t i = 0; i < last; ++i)
    if (ends_[i] >= 0) read[as_json_has_it(files_[i].path)] = {files_[i], ends_[i]};
  read.erase(saved.value("path", std::string()));
  saved["before"] = Json::array();
  for (const auto& [path, file] : read)
    saved["before"].push_back({path, file.stamp.size, file.stamp.mtime_ns, file.offset, file.whole});
  return to_text(saved);
}

Status FileSource::seek_in_stream(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const Cursor at, parse_cursor(cursor));
  const Json json = parse_json(cursor);
  const Json before = json.value("before", Json());
  for (const Json& file : before) {
    if (!file.is_array() || file.size() != 5 || !file[0].is_string() || !file[4].is_boolean() ||
        !std::all_of(file.begin() + 1, file.begin() + 4, [](const Json& value) { return value.is_number_integer(); }))
      return error(Code::kInvalidArgument, "not a cursor of files: ", cursor.substr(0, 200));
    read_before_[file[0]] = {{file[0], file[1], file[2]}, file[3], file[4]};
  }
  // Of a run before files were remembered: those that stood before this one were read.
  const auto last = static_cast<size_t>(at.file);
  if (before.is_null() && last < files_.size() && as_json_has_it(files_[last].path) == at.path)
    for (size_t i = 0; i < last; ++i) read_before_[as_json_has_it(files_[i].path)] = {files_[i], files_[i].size};
  read_before_[at.path] = {{at.path, at.size, at.mtime_ns}, at.offset, json.value("whole", false)};
  anything_read_ = true;
  return {};
}

Status FileSource::seek(const std::string& cursor) {
  if (cursor.empty() || in_stream_) {
    rewind();
    return cursor.empty() ? Status() : seek_in_stream(cursor);
  }
  const Status found = seek_in_files(cursor);
  if (!found.ok()) rewind();
  return found;
}

Status FileSource::seek_in_files(const std::string& cursor) {
  STREAMVEC_ASSIGN_OR_RETURN(const Cursor at, parse_cursor(cursor));
  const auto file = static_cast<size_t>(at.file);
  if (file >= files_.size())
    return error(Code::kFailedPrecondition, "the run stopped in file ", at.file + 1, " (", at.path,
                 "), but there are only ", files_.size(), " now; name the same files in the same order, or start anew");
  STREAMVEC_ASSIGN_OR_RETURN(const FileStamp now, FileStamp::of(files_[file].path));
  STREAMVEC_RETURN_IF_ERROR(check_unchanged({at.path, at.size, at.mtime_ns}, now));
  if (file_ && file == index_ && at.offset >= offset_) {
    STREAMVEC_RETURN_IF_ERROR(skip_ahead(at.offset));
  } else {
    rewind();
    for (; index_ < file; ++index_) bytes_before_ += files_[index_].size;
    STREAMVEC_RETURN_IF_ERROR(open_file());
    STREAMVEC_RETURN_IF_ERROR(skip_to(at.offset));
  }
  bytes_read_ = at.bytes_read;
  anything_read_ = true;
  return {};
}

Status FileSource::skip_to(int64_t offset) {
  const int64_t whole_blocks = offset / static_cast<int64_t>(kBlockBytes) * static_cast<int64_t>(kBlockBytes);
  STREAMVEC_ASSIGN_OR_RETURN(const bool there, file_->skip(whole_blocks - offset_));
  begin_ = end_ = 0;
  offset_ = whole_blocks;
  STREAMVEC_RETURN_IF_ERROR(fill());
  const auto rest = static_cast<size_t>(offset - whole_blocks);
  if (!there || buffered().size() < rest)
    return error(Code::kFailedPrecondition, files_[index_].path, " ends before byte ", offset,
                 ", where the run stopped; restore it, or start anew");
  take(rest);
  return {};
}

// What is buffered ends with a block, unless the file does.
Status FileSource::skip_ahead(int64_t offset) {
  const int64_t buffered_end = offset_ + static_cast<int64_t>(buffered().size());
  take(static_cast<size_t>(std::min(offset, buffered_end) - offset_));
  return offset <= buffered_end ? Status() : skip_to(offset);
}

}  // namespace streamvec
