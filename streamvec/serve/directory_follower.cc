#include "streamvec/serve/directory_follower.h"

#include <pthread.h>

#include <algorithm>
#include <deque>
#include <fstream>

#include "streamvec/serve/file_sign.h"
#include "streamvec/train/checkpoint.h"

namespace streamvec {
namespace {

constexpr int64_t kTailBytes = 4 << 20;  // of metrics, read at once at most

// What is different once another checkpoint is the newest: DIR/latest is replaced by renaming.
std::string sign_of(const std::string& directory) {
  const std::string path = directory + "/latest", sign = sign_of_file(path);
  std::string step;
  std::ifstream(path) >> step;
  return sign.empty() ? "" : step + sign;
}

}  // namespace

Result<std::unique_ptr<DirectoryFollower>> DirectoryFollower::start(Options options) {
  std::unique_ptr<DirectoryFollower> follower(new DirectoryFollower(std::move(options)));
  STREAMVEC_RETURN_IF_ERROR(follower->load());
  follower->read_metrics();
  follower->thread_ = std::thread([made = follower.get()] {
    ::pthread_setname_np(::pthread_self(), "follow");
    made->run();
  });
  return follower;
}

DirectoryFollower::~DirectoryFollower() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Status DirectoryFollower::load() {
  const std::string sign = sign_of(options_.directory);
  std::vector<std::string> notes;
  auto snapshot = load_snapshot(options_.directory, &notes);
  for (const std::string& note : notes) options_.on_note(note);
  if (!snapshot.ok()) return snapshot.status();
  seen_ = sign;
  step_ = snapshot->step;
  options_.on_snapshot(std::make_shared<const Snapshot>(std::move(*snapshot)));
  return {};
}

void DirectoryFollower::run() {
  std::string failed;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, options_.look_every, [&] { return stopping_; })) {
    lock.unlock();
    read_metrics();
    // A save under way, or one that was thinned out while it was read, is looked at again; what was served stays.
    if (sign_of(options_.directory) != seen_)
      if (const Status status = load(); !status.ok() && status.message() != failed)
        options_.on_note(failed = status.message());
    lock.lock();
  }
}

// Whole lines that have come since the last look. A file that became another one is read from its beginning.
void DirectoryFollower::read_metrics() {
  const std::string path = options_.directory + "/metrics.jsonl";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;
  const auto size = static_cast<int64_t>(info.st_size);
  const bool first = metrics_at_ < 0;
  if (first || metrics_file_ != info.st_ino || size < metrics_at_) metrics_at_ = 0;
  metrics_file_ = info.st_ino;
  bool cut = false;
  if (size - metrics_at_ > kTailBytes) {
    metrics_at_ = size - kTailBytes;
    cut = true;
  }
  std::ifstream file(path, std::ios::binary);
  file.seekg(metrics_at_);
  std::string text(static_cast<size_t>(size - metrics_at_), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return;
  text.resize(end + 1);
  metrics_at_ += static_cast<int64_t>(text.size());
  std::deque<std::string> lines;
  for (size_t at = cut ? text.find('\n') + 1 : 0; at < text.size();) {
    const size_t stop = text.find('\n', at);
    lines.push_back(text.substr(at, stop - at));
    at = stop + 1;
  }
  while (first && std::ssize(lines) > options_.lines_first) lines.pop_front();
  for (const std::string& line : lines) options_.on_metrics(line);
}

}  // namespace streamvec
