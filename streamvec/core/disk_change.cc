#include "streamvec/core/disk_change.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

namespace streamvec {
namespace {

namespace fs = std::filesystem;

thread_local DiskWatch* current_watch = nullptr;

template <typename Make>
int change(const DiskChange& wanted, Make&& make) {
  if (const std::optional<int> instead = ask_watch(wanted)) return *instead;
  return make() == 0 ? 0 : errno;
}

}  // namespace

DiskWatch::Scope::Scope(DiskWatch& watch) : outer_(std::exchange(current_watch, &watch)) {}
DiskWatch::Scope::~Scope() {
  current_watch = outer_;
}

std::optional<int> ask_watch(const DiskChange& change) {
  return current_watch == nullptr ? std::nullopt : current_watch->before(change);
}

int rename_entry(const std::string& from, const std::string& to) {
  return change({.kind = DiskChange::Kind::kRename, .path = from, .to = to, .bytes = {}},
                [&] { return ::rename(from.c_str(), to.c_str()); });
}

int make_directory(const std::string& path) {
  return change({.kind = DiskChange::Kind::kMakeDirectory, .path = path, .to = {}, .bytes = {}},
                [&] { return ::mkdir(path.c_str(), 0777); });
}

int remove_file(const std::string& path) {
  return change({.kind = DiskChange::Kind::kRemoveFile, .path = path, .to = {}, .bytes = {}},
                [&] { return ::unlink(path.c_str()); });
}

int remove_directory(const std::string& path) {
  return change({.kind = DiskChange::Kind::kRemoveDirectory, .path = path, .to = {}, .bytes = {}},
                [&] { return ::rmdir(path.c_str()); });
}

int remove_tree(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (status.type() == fs::file_type::not_found) return 0;
  if (failed) return failed.value();
  if (status.type() != fs::file_type::directory) return remove_file(path);
  std::vector<std::string> inside;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed))
    inside.push_back(at->path().string());
  if (failed) return failed.value();
  for (const std::string& entry : inside)
    if (const int error_number = remove_tree(entry); error_number != 0) return error_number;
  return remove_directory(path);
}

}  // namespace streamvec
