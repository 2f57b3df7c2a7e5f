#include "streamvec/core/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "streamvec/core/status.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using Change = DiskChange::Kind;

constexpr size_t kSectorBytes = 64;  // small, as the files of tests are

bool takes_space(Change kind) {
  return kind == Change::kCreate || kind == Change::kWrite || kind == Change::kMakeDirectory;
}
bool is_sync(Change kind) {
  return kind == Change::kSync || kind == Change::kSyncDirectory;
}

}  // namespace

SimulatedDisk::SimulatedDisk(std::string root, const Options& options)
    : root_(std::move(root)), options_(options), random_(options.seed), nodes_(1) {
  nodes_.front().is_directory = true;
}

void SimulatedDisk::restart() {
  changes_left_ = INT64_MAX;
  rename_late_one();
}

std::string SimulatedDisk::below_root(std::string_view path) const {
  const fs::path relative = fs::path(path).lexically_normal().lexically_relative(root_);
  return relative.empty() || *relative.begin() == ".." ? std::string() : relative.string();
}

SimulatedDisk::Place SimulatedDisk::find(std::string_view path) const {
  Place place{.directory = {}, .node = 0, .name = {}};
  for (const fs::path& part : fs::path(below_root(path))) {
    if (part == "." || part.empty()) continue;
    if (!place.node || !nodes_[*place.node].is_directory) return {};
    place.directory = place.node;
    place.name = part.string();
    const Entries& names = nodes_[*place.directory].names;
    const auto found = names.find(place.name);
    place.node = found == names.end() ? std::nullopt : std::optional(found->second);
  }
  return place;
}

std::optional<int> SimulatedDisk::before(const DiskChange& change) {
  if (below_root(change.path).empty()) return is_sync(change.kind) ? std::optional(0) : std::nullopt;
  if (ended() || --changes_left_ < 0) return EIO;
  if (const auto failed = fail(change)) {
    ++failures_;
    return failed;
  }
  if (late_syncs_ == 0) rename_late_one();
  apply(change);
  return is_sync(change.kind) ? std::optional(0) : std::nullopt;
}

std::optional<int> SimulatedDisk::fail(const DiskChange& change) {
  if (takes_space(change.kind) && options_.full > 0 && random_.uniform() < options_.full) return ENOSPC;
  if (!is_sync(change.kind) || options_.sync_error <= 0 || random_.uniform() >= options_.sync_error)
    return std::nullopt;
  if (const Place place = find(change.path); place.node) nodes_[*place.node].lost = true;
  return EIO;
}

// What the system will refuse changes nothing here, either.
void SimulatedDisk::apply(const DiskChange& change) {
  const Place place = find(change.path);
  switch (change.kind) {
    case Change::kCreate:
    case Change::kMakeDirectory:
      if (place.node && change.kind == Change::kCreate) nodes_[*place.node].bytes.clear();
      if (place.node || !place.directory) return;
      nodes_.emplace_back().is_directory = change.kind == Change::kMakeDirectory;
      return rename(*place.directory, {{place.name, nodes_.size() - 1}});
    case Change::kWrite:
      if (place.node) nodes_[*place.node].bytes.append(change.bytes);
      return;
    case Change::kRename:
      if (!place.node) return;
      if (options_.rename_late && nodes_[*place.node].is_directory && change.path.ends_with(".partial")) {
        late_ = {std::string(change.path), std::string(change.to)};
        late_syncs_ = 2;
        return;
      }
      return apply_rename(place, change.to);
    case Change::kRemoveFile:
    case Change::kRemoveDirectory:
      if (!place.node || nodes_[*place.node].is_directory != (change.kind == Change::kRemoveDirectory)) return;
      if (nodes_[*place.node].names.empty()) rename(*place.directory, {{place.name, std::nullopt}});
      return;
    case Change::kSync:
      if (place.node) sync(nodes_[*place.node]);
      return;
    case Change::kSyncDirectory:
      if (place.node) sync_names(nodes_[*place.node]);
  }
}

void SimulatedDisk::apply_rename(const Place& from, std::string_view to) {
  const Place target = find(to);
  STREAMVEC_CHECK(from.directory == target.directory);  // nothing here moves a file from one directory to another
  if (target.node && !nodes_[*target.node].names.empty()) return;
  rename(*from.directory, {{from.name, std::nullopt}, {target.name, from.node}});
}

void SimulatedDisk::rename(size_t directory, Renaming renaming) {
  for (const auto& [name, node] : renaming) {
    if (node)
      nodes_[directory].names[name] = *node;
    else
      nodes_[directory].names.erase(name);
  }
  nodes_[directory].unsynced.push_back(std::move(renaming));
}

void SimulatedDisk::sync(Node& node) {
  if (!options_.skip_sync && !node.lost) node.kept_bytes = node.bytes;
}

void SimulatedDisk::sync_names(Node& node) {
  if (options_.skip_directory_sync) return;
  if (late_ && --late_syncs_ == 1) return;
  node.kept_names = node.names;
  node.unsynced.clear();
}

// And is synced at once, as the program means it to be.
void SimulatedDisk::rename_late_one() {
  const auto late = std::exchange(late_, std::nullopt);
  if (!late) return;
  const Place from = find(late->first);
  apply_rename(from, late->second);
  sync_names(nodes_[*from.directory]);
}

// Of a file: what was synced, all of it, or a part of what came since, with holes.
std::string SimulatedDisk::left_of(const Node& file) {
  const uint32_t choice = random_.below(3);
  if (file.bytes == file.kept_bytes || choice == 0) return file.kept_bytes;
  if (choice == 1 && !file.lost) return file.bytes;
  const size_t kept = file.bytes.starts_with(file.kept_bytes) ? file.kept_bytes.size() : 0;
  std::string left = file.bytes.substr(0, kept + random_.below(static_cast<uint32_t>(file.bytes.size() - kept + 1)));
  for (size_t at = kept; at < left.size(); at += kSectorBytes)
    if (random_.uniform() < 0.3f)
      std::fill_n(left.begin() + static_cast<std::ptrdiff_t>(at), std::min(kSectorBytes, left.size() - at), '\0');
  return left;
}

// `order`: 0 nothing that was not synced, 1 the first so many changes, else any.
SimulatedDisk::Entries SimulatedDisk::left_of_names(const Node& directory, uint32_t order) {
  Entries left = directory.kept_names;
  const uint32_t first = random_.below(static_cast<uint32_t>(directory.unsynced.size()) + 1);
  for (size_t i = 0; i < directory.unsynced.size(); ++i) {
    if (order == 0 || (order == 1 && i >= first) || (order > 1 && random_.uniform() < 0.5f)) continue;
    for (const auto& [name, node] : directory.unsynced[i]) {
      if (node)
        left[name] = *node;
      else
        left.erase(name);
    }
  }
  return left;
}

// Of a node and all below it, as the real directory has it then.
size_t SimulatedDisk::keep(const std::vector<Node>& before, size_t node, uint32_t order, const std::string& path) {
  const size_t kept = nodes_.size();
  nodes_.emplace_back().is_directory = before[node].is_directory;
  if (!before[node].is_directory) {
    nodes_[kept].bytes = nodes_[kept].kept_bytes = left_of(before[node]);
    std::ofstream(path, std::ios::binary) << nodes_[kept].bytes;
    return kept;
  }
  fs::create_directory(path);
  Entries names;
  for (const auto& [name, inside] : left_of_names(before[node], order))
    names[name] = keep(before, inside, order, path + "/" + name);
  nodes_[kept].names = nodes_[kept].kept_names = std::move(names);
  return kept;
}

void SimulatedDisk::lose_power() {
  late_.reset();
  const std::vector<Node> before = std::exchange(nodes_, {});
  fs::remove_all(root_);
  keep(before, 0, random_.below(4), root_);
  restart();
}

}  // namespace streamvec
