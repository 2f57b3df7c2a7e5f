#include "streamvec/source/file_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

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

Result<std::vector<std::string>> files_below(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failure;
  fs::recursive_directory_iterator entry(directory, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    std::error_code unknown;  // a link that leads nowhere is no regular file
    if (is_hidden(entry->path()))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file(unknown))
      paths.push_back(entry->path().string());
  }
  if (failure) return file_error(failure.value(), "read directory", directory);
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
    : files_(std::move(files)), options_(options), buffer_(2 * kBlockBytes + kPieceBytes) {
  for (const FileStamp& file : files_) bytes_total_ += file.size;
}

std::string FileSource::name() const {
  return files_.size() == 1 ? files_[0].path
                            : files_[0].path + " and " + std::to_string(files_.size() - 1) + " more files";
}

std::vector<std::string> FileSource::notes() const {
  std::vector<std::string> lines;
  for (const size_t index : empty_) lines.push_back(files_[index].path + " is empty");
  return lines;
}

void FileSource::rewind() {
  close_file();
  index_ = 0;
  bytes_before_ = bytes_read_ = 0;
  anything_read_ = false;
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
    if (!file_) STREAMVEC_RETURN_IF_ERROR(open_file());
    STREAMVEC_RETURN_IF_ERROR(fill());
    const bool beginning = offset_ == 0;
    if (beginning) STREAMVEC_RETURN_IF_ERROR(check_beginning());
    if (buffered().empty()) {
      if (beginning) empty_.insert(index_);
      continue;
    }
    const size_t size = buffered().size() > kPieceBytes ? piece_bytes(buffered()) : buffered().size();
    document.text = buffered().substr(0, size);
    take(size);
    bytes_read_ = bytes_before_ + file_->stored_read();
    anything_read_ = true;
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
  return to_text({{"file", index_},
                  {"path", file.path},
                  {"offset", offset},
                  {"size", file.size},
                  {"mtime_ns", file.mtime_ns},
                  {"bytes_read", bytes_read}});
}

Status FileSource::seek(const std::string& cursor) {
  rewind();
  if (cursor.empty()) return {};
  STREAMVEC_ASSIGN_OR_RETURN(const Cursor at, parse_cursor(cursor));
  const auto file = static_cast<size_t>(at.file);
  if (file >= files_.size())
    return error(Code::kFailedPrecondition, "the run stopped in file ", at.file + 1, " (", at.path,
                 "), but there are only ", files_.size(), " now; name the same files in the same order, or start anew");
  STREAMVEC_ASSIGN_OR_RETURN(const FileStamp now, FileStamp::of(files_[file].path));
  STREAMVEC_RETURN_IF_ERROR(check_unchanged({at.path, at.size, at.mtime_ns}, now));
  for (; index_ < file; ++index_) bytes_before_ += files_[index_].size;
  STREAMVEC_RETURN_IF_ERROR(open_file());
  STREAMVEC_RETURN_IF_ERROR(skip_to(at.offset));
  bytes_read_ = at.bytes_read;
  anything_read_ = true;
  return {};
}

Status FileSource::skip_to(int64_t offset) {
  const int64_t whole_blocks = offset / static_cast<int64_t>(kBlockBytes) * static_cast<int64_t>(kBlockBytes);
  STREAMVEC_ASSIGN_OR_RETURN(const bool there, file_->skip(whole_blocks));
  offset_ = whole_blocks;
  STREAMVEC_RETURN_IF_ERROR(fill());
  const auto rest = static_cast<size_t>(offset - whole_blocks);
  if (!there || buffered().size() < rest)
    return error(Code::kFailedPrecondition, files_[index_].path, " ends before byte ", offset,
                 ", where the run stopped; restore it, or start anew");
  take(rest);
  return {};
}

}  // namespace streamvec
