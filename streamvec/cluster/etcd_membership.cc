#include "streamvec/cluster/etcd_membership.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace streamvec {
namespace {

constexpr auto kEtcdCall = std::chrono::seconds(5);
constexpr auto kRosterLook = std::chrono::milliseconds(100);

Deadline call_deadline() {
  return Deadline::after(kEtcdCall);
}

bool is_name(const std::string& job) {
  return !job.empty() && job.size() <= 200 && std::all_of(job.begin(), job.end(), [](unsigned char sign) {
    return std::isalnum(sign) || sign == '-' || sign == '_' || sign == '.';
  });
}

}  // namespace

Result<std::unique_ptr<EtcdMembership>> EtcdMembership::join(const Options& options) {
  if (!is_name(options.job))
    return error(Code::kInvalidArgument, "'", options.job, "' is no name of a job; use letters, digits, '-', '_', '.'");
  std::unique_ptr<EtcdMembership> made(new EtcdMembership(options));
  STREAMVEC_RETURN_IF_ERROR(made->add_key());
  made->thread_ = std::thread([raw = made.get()] { raw->keep_alive(); });
  return made;
}

// The lease's number is etcd's, and nobody else's: so is the key.
Status EtcdMembership::add_key() {
  STREAMVEC_ASSIGN_OR_RETURN(lease_, etcd_.grant_lease(options_.lease_s, call_deadline()));
  key_ = prefix() + "nodes/" + std::to_string(lease_);
  return etcd_.put(key_, options_.address, lease_, call_deadline());
}

EtcdMembership::~EtcdMembership() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (lease_ != 0) (void)etcd_.revoke(lease_, call_deadline());
}

// An etcd that is away for a while changes nothing: nodes know each other by then.
void EtcdMembership::keep_alive() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(options_.lease_s / 4), [&] { return leaving_; })) {
    lock.unlock();
    (void)etcd_.keep_alive(lease_, call_deadline());
    lock.lock();
  }
}

Result<EtcdMembership::Roster> EtcdMembership::await_roster(double wait_s, const std::atomic<bool>* stop) {
  const Deadline deadline =
      Deadline::after(std::chrono::duration_cast<Deadline::Clock::duration>(std::chrono::duration<double>(wait_s)));
  for (int64_t present = 0;; std::this_thread::sleep_for(kRosterLook)) {
    if (stop != nullptr && stop->load()) return error(Code::kCancelled, "stopped while other nodes were awaited");
    STREAMVEC_ASSIGN_OR_RETURN(Roster roster, look(present));
    if (!roster.nodes.empty()) return roster;
    if (deadline.passed())
      return error(Code::kUnavailable, present, " of ", options_.nodes, " nodes of the job '", options_.job,
                   "' came within ", wait_s, " s; are all started with the same --etcd, --job and --workers?");
  }
}

Result<EtcdMembership::Roster> EtcdMembership::look(int64_t& present) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<EtcdKey> keys, etcd_.list(prefix(), call_deadline()));
  std::vector<EtcdKey> nodes;
  for (const EtcdKey& key : keys) {
    if (key.key == prefix() + "roster") return read_roster(key.value);
    if (key.key.rfind(prefix() + "nodes/", 0) == 0) nodes.push_back(key);
  }
  present = static_cast<int64_t>(nodes.size());
  if (present < options_.nodes || nodes.front().key != key_) return Roster();
  std::string text;
  for (int32_t i = 0; i < options_.nodes; ++i)
    text += nodes[static_cast<size_t>(i)].key + " " + nodes[static_cast<size_t>(i)].value + "\n";
  // With the first node's lease: the next job of that name begins without one.
  STREAMVEC_RETURN_IF_ERROR(etcd_.put(prefix() + "roster", text, lease_, call_deadline()));
  return read_roster(text);
}

Result<EtcdMembership::Roster> EtcdMembership::read_roster(const std::string& text) const {
  Roster roster;
  roster.rank = -1;
  std::istringstream lines(text);
  for (std::string key, address; lines >> key >> address; roster.nodes.push_back(address))
    if (key == key_) roster.rank = static_cast<int32_t>(roster.nodes.size());
  if (roster.rank < 0)
    return error(Code::kFailedPrecondition, "the job '", options_.job, "' has all its ", roster.nodes.size(),
                 " nodes; choose another --job, or wait for its end");
  return roster;
}

}  // namespace streamvec
