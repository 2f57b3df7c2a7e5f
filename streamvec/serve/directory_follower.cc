#include "streamvec/serve/directory_follower.h"

#include <pthread.h>

#include <fstream>

#include "streamvec/serve/file_sign.h"
#include "streamvec/train/checkpoint.h"

namespace streamvec {
namespace {

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
  notes_.clear();
  for (const std::string& note : notes) notes_ += (notes_.empty() ? "" : "; ") + note;
  options_.on_trouble(notes_);
  options_.on_snapshot(std::make_shared<const Snapshot>(std::move(*snapshot)));
  return {};
}

// A save under way, or one that was thinned out while it was read, is looked at again; what was served stays.
void DirectoryFollower::look() {
  const bool failed_before = !failure_.empty();
  const bool is_seen = sign_of(options_.directory) == seen_;
  const Status status = is_seen ? Status() : load();
  if (!status.ok() && status.message() != failure_) {
    options_.on_note(status.message());
    options_.on_trouble(status.message());
  }
  if (is_seen && failed_before) options_.on_trouble(notes_);
  failure_ = status.message();
}

void DirectoryFollower::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, options_.look_every, [&] { return stopping_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

}  // namespace streamvec
