#include "streamvec/cluster/etcd_membership.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>

namespace streamvec {
namespace {

constexpr auto kEtcdCall = std::chrono::seconds(5);
constexpr auto kRosterLook = std::chrono::milliseconds(100);
constexpr auto kWriteAgain = std::chrono::seconds(1);

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
  const auto wakes = [&] { return leaving_ || pending_.has_value(); };
  while (!leaving_) {
    changed_.wait_for(lock, std::chrono::duration<double>(options_.lease_s / 4), wakes);
    if (leaving_) return;
    lock.unlock();
    if (etcd_.keep_alive(lease_, call_deadline()).code() == Code::kNotFound) renew_lease();
    write_pending();
    lock.lock();
    // What could not be written is tried again, not at once.
    if (pending_) changed_.wait_for(lock, kWriteAgain, [&] { return leaving_; });
  }
}

// Its end took the roster along. That is written again, unless another has taken its place.
void EtcdMembership::renew_lease() {
  const Result<int64_t> lease = etcd_.grant_lease(options_.lease_s, call_deadline());
  if (!lease.ok()) return;
  lease_ = *lease;
  (void)etcd_.put(key_, options_.address, lease_, call_deadline());
  const std::lock_guard lock(mutex_);
  if (written_.empty()) return;
  modified_ = 0;
  if (!pending_) pending_ = written_;
}

void EtcdMembership::write_pending() {
  std::string text;
  int64_t modified = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!pending_ || !status_.ok()) return;
    text = *pending_;
    modified = modified_;
  }
  const Result<int64_t> written = etcd_.put_if(roster_key(), text, lease_, modified, call_deadline());
  if (written.status().code() == Code::kAborted) return find_roster();
  if (!written.ok()) return;
  const std::lock_guard lock(mutex_);
  modified_ = *written;
  written_ = text;
  if (pending_ == text) pending_.reset();
}

// It is not as we knew it: it went with a lease, it was written by us without our hearing of that, or by another.
void EtcdMembership::find_roster() {
  const Result<std::vector<EtcdKey>> keys = etcd_.list(roster_key(), call_deadline());
  if (!keys.ok()) return;
  const std::lock_guard lock(mutex_);
  modified_ = keys->empty() ? 0 : keys->front().modified;
  uint32_t epoch = 0;
  int64_t first_created = 0;
  if (!keys->empty()) std::istringstream(keys->front().value) >> epoch >> first_created;
  if (keys->empty() || first_created == first_created_) return;
  pending_.reset();
  status_ = error(Code::kAborted, "another node leads the job '", options_.job,
                  "' by now: etcd has not heard of this one for ", options_.lease_s,
                  " s; what was learnt here is saved, start it again under another --job to go on");
}

namespace {

// "epoch first-key's-revision", then a line each: id, whether it trains, whether it owns rows, its key in etcd or "-",
// where it is reached.
std::string roster_text(uint32_t epoch, int64_t first_created, const std::vector<Registry::Member>& members,
                        const std::vector<std::string>& keys) {
  std::ostringstream text;
  text << epoch << " " << first_created << "\n";
  for (size_t i = 0; i < members.size(); ++i)
    text << members[i].node << " " << members[i].worker << " " << members[i].server << " "
         << (keys.empty() ? "-" : keys[i]) << " " << members[i].address << "\n";
  return text.str();
}

}  // namespace

void EtcdMembership::publish(uint32_t epoch, std::vector<Member> members) {
  const std::lock_guard lock(mutex_);
  pending_ = roster_text(epoch, first_created_, members, {});
  changed_.notify_all();
}

Status EtcdMembership::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
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
  const EtcdKey* roster = nullptr;
  for (const EtcdKey& key : keys) {
    if (key.key == roster_key()) roster = &key;
    if (key.key.rfind(prefix() + "nodes/", 0) == 0) nodes.push_back(key);
  }
  if (roster != nullptr) return read_roster(roster->value, nodes);
  present = static_cast<int64_t>(nodes.size());
  if (present < options_.nodes || nodes.front().key != key_) return Roster();
  return write_first(nodes);
}

// With the first node's lease: the next job of that name begins without one.
Result<EtcdMembership::Roster> EtcdMembership::write_first(const std::vector<EtcdKey>& nodes) {
  std::vector<Member> members;
  std::vector<std::string> keys;
  for (int32_t i = 0; i < options_.nodes; ++i) {
    const bool only_owns = i >= options_.nodes - options_.servers;
    members.push_back({static_cast<NodeId>(i + 1), nodes[static_cast<size_t>(i)].value, !only_owns,
                       only_owns || options_.servers == 0});
    keys.push_back(nodes[static_cast<size_t>(i)].key);
  }
  const std::string text = roster_text(0, nodes.front().created, members, keys);
  const Result<int64_t> written = etcd_.put_if(roster_key(), text, lease_, 0, call_deadline());
  if (written.status().code() == Code::kAborted) return Roster();  // another was first: it is read next time
  STREAMVEC_RETURN_IF_ERROR(written.status());
  {
    const std::lock_guard lock(mutex_);
    modified_ = *written;
    written_ = text;
    first_created_ = nodes.front().created;
  }
  return read_roster(text, nodes);
}

Result<EtcdMembership::Roster> EtcdMembership::read_roster(const std::string& text,
                                                           const std::vector<EtcdKey>& nodes) const {
  Roster roster;
  roster.rank = -1;
  std::istringstream lines(text);
  uint32_t epoch = 0;
  int64_t first_created = 0;
  lines >> epoch >> first_created;
  std::vector<Member> only_own;
  Member member;
  for (std::string key; lines >> member.node >> member.worker >> member.server >> key >> member.address;) {
    if (key == key_) roster.rank = static_cast<int32_t>(roster.nodes.size() + only_own.size());
    (member.worker ? roster.nodes : only_own).push_back(member);
  }
  if (roster.rank < 0) {
    // Others have begun. No key is older than the first one's, and no two are of one age: nobody else has this id.
    const auto own = std::find_if(nodes.begin(), nodes.end(), [&](const EtcdKey& key) { return key.key == key_; });
    const int64_t id = own == nodes.end() ? 0 : own->created - first_created + 1;
    if (roster.nodes.empty() || id <= 1 || id > std::numeric_limits<NodeId>::max())
      return error(Code::kUnavailable, "the roster of the job '", options_.job, "' in etcd cannot be read; is another ",
                   "version of streamvec running? Choose another --job, or wait for its end");
    roster.joins = true;
    roster.rank = static_cast<int32_t>(roster.nodes.size());
    roster.nodes.push_back({static_cast<NodeId>(id), options_.address, true, only_own.empty()});
  }
  roster.nodes.insert(roster.nodes.end(), only_own.begin(), only_own.end());
  return roster;
}

}  // namespace streamvec
