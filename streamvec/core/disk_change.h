// Changes to a disk that are meant to survive a crash: each is one system call, made here, so that a test may see all
// of them in their order and say what becomes of each (simulated_disk.h). Without such a watch a call costs a look at
// one pointer more. Errors are error numbers (errno), 0 for none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace streamvec {

struct DiskChange {
  enum class Kind { kCreate, kWrite, kSync, kRename, kMakeDirectory, kRemoveFile, kRemoveDirectory, kSyncDirectory };
  Kind kind = Kind::kCreate;
  std::string_view path;
  std::string_view to;     // kRename
  std::string_view bytes;  // kWrite, at the end of the file
};

class DiskWatch {
 public:
  virtual ~DiskWatch() = default;
  // Before a change is made. Nothing: make it. Else it is not made, and ends with that error, or as if it had been.
  virtual std::optional<int> before(const DiskChange& change) = 0;

  // Of changes that this thread makes while it lasts.
  class Scope {
   public:
    explicit Scope(DiskWatch& watch);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DiskWatch* const outer_;
  };
};

// What this thread's watch says of the change; nothing when there is none.
std::optional<int> ask_watch(const DiskChange& change);

int rename_entry(const std::string& from, const std::string& to);
int make_directory(const std::string& path);
int remove_file(const std::string& path);
int remove_directory(const std::string& path);  // which is empty
int remove_tree(const std::string& path);       // whatever is there, and no error when nothing is

}  // namespace streamvec
