// A disk under a seed, for tests of what a crash may leave. The code under test works on a real directory; its changes
// are watched, counted and ended at any of them, and a loss of power then makes the directory one that a disk may have
// kept of them: what was synced, and any of the rest. Of a file that was not synced, a part, with holes; of names that
// were made, changed or removed since their directory was synced, none, the first so many, or any of them. A file's
// sync does not keep its name, nor a directory's sync what is in its files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/disk_change.h"
#include "streamvec/core/random.h"

namespace streamvec {

class SimulatedDisk : public DiskWatch {
 public:
  struct Options {
    uint64_t seed = 1;
    double full = 0;        // of changes that take space: they fail, there is none
    double sync_error = 0;  // of syncs: they fail, and what was not synced before never is
    // Planted faults, to see that they are found: what is asked for is not done, and said to be.
    bool skip_sync = false;            // of files
    bool skip_directory_sync = false;  // of directories
    bool rename_late = false;          // a directory gets its name only after the next file that is renamed has its own
  };
  // `root`: a directory, which is there and empty; what is done elsewhere is done, but for syncs.
  SimulatedDisk(std::string root, const Options& options);

  std::optional<int> before(const DiskChange& change) override;

  // The process ends before the change after so many; from then on every one fails and nothing is changed.
  void end_after(int64_t changes) { changes_left_ = changes; }
  bool ended() const { return changes_left_ < 0; }
  // Another process goes on with what the last one has done, synced or not.
  void restart();
  // Power is lost and comes back: the directory has what the disk has kept.
  void lose_power();
  int64_t failures() const { return failures_; }  // of changes, but for those after the end

 private:
  using Entries = std::map<std::string, size_t>;
  // One change to a directory's names: whole or not at all. No node: the name goes.
  using Renaming = std::vector<std::pair<std::string, std::optional<size_t>>>;
  struct Node {
    bool is_directory = false;
    std::string bytes, kept_bytes;  // of a file: as it is, and as it was when synced last
    bool lost = false;              // a sync has failed
    Entries names, kept_names;      // of a directory
    std::vector<Renaming> unsynced;
  };
  // A name in its directory, and what it leads to.
  struct Place {
    std::optional<size_t> directory, node;
    std::string name;
  };

  Place find(std::string_view path) const;
  std::string below_root(std::string_view path) const;
  std::optional<int> fail(const DiskChange& change);
  void apply(const DiskChange& change);
  void apply_rename(const Place& from, std::string_view to);
  void rename(size_t directory, Renaming renaming);
  void sync(Node& node);
  void sync_names(Node& node);
  void rename_late_one();
  std::string left_of(const Node& file);
  Entries left_of_names(const Node& directory, uint32_t order);
  size_t keep(const std::vector<Node>& before, size_t node, uint32_t order, const std::string& path);

  const std::string root_;
  const Options options_;
  Random random_;
  int64_t changes_left_ = INT64_MAX, failures_ = 0;
  std::vector<Node> nodes_;  // the first is the root
  // (rename_late) what waits, and for how many syncs of directories: its own and that of the next.
  std::optional<std::pair<std::string, std::string>> late_;
  int32_t late_syncs_ = 0;
};

}  // namespace streamvec
