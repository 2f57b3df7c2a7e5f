#include "streamvec/cluster/etcd_membership.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>
#include <utility>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

constexpr auto kEtcdCall = std::chrono::seconds(5);
constexpr auto kRosterLook = std::chrono::milliseconds(100);
constexpr auto kAgain =
    std::chrono::milliseconds(250);  // what could not be written, or found, is tried again after this
constexpr double kSeek_s = 1;        // after the last call of seek()

Deadline call_deadline() {
  return Deadline::after(kEtcdCall);
}

bool is_name(const std::string& job) {
  return !job.empty() && job.size() <= 200 && std::all_of(job.begin(), job.end(), [](unsigned char sign) {
    return std::isalnum(sign) || sign == '-' || sign == '_' || sign == '.';
  });
}

}  // namespace

Status EtcdMembership::check_job(const std::string& job) {
  if (is_name(job)) return {};
  return error(Code::kInvalidArgument, "'", job, "' is no name of a job; use letters, digits, '-', '_', '.'");
}

Result<std::unique_ptr<EtcdMembership>> EtcdMembership::join(const Options& options) {
  STREAMVEC_RETURN_IF_ERROR(check_job(options.job));
  std::unique_ptr<EtcdMembership> made(new EtcdMembership(options));
  STREAMVEC_RETURN_IF_ERROR(made->add_key());
  made->thread_ = std::thread([raw = made.get()] { raw->keep_alive(); });
  return made;
}

// The lease's number is etcd's, and nobody else's: so is the key.
Status EtcdMembership::add_key() {
  reached_s_ = kept_s_ = clock_seconds();
  STREAMVEC_ASSIGN_OR_RETURN(lease_, etcd_.grant_lease(options_.lease_s, call_deadline()));
  key_ = prefix() + "nodes/" + std::to_string(lease_);
  STREAMVEC_RETURN_IF_ERROR(etcd_.put(key_, options_.address, lease_, call_deadline()));
  has_key_ = true;
  return {};
}

EtcdMembership::~EtcdMembership() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Of a leader that has failed the others need it.
  if (leads_ && status_.ok() && (finished_ || !published_))
    (void)etcd_.write_if({{leader_key(), "", 0, leader_key_at_}, {roster_key(), "", 0, roster_at_}},
                         {{roster_key(), std::nullopt, 0}}, call_deadline());
  if (lease_ != 0) (void)etcd_.revoke(lease_, call_deadline());
}

// An etcd that is away for a while changes nothing: nodes know each other by then.
void EtcdMembership::keep_alive() {
  std::unique_lock lock(mutex_);
  const auto wakes = [&] { return leaving_ || pending_.has_value() || seeks(); };
  while (!leaving_) {
    changed_.wait_for(lock, std::chrono::duration<double>(options_.lease_s / 4), wakes);
    if (leaving_) return;
    lock.unlock();
    renew();
    write_pending();
    look_for_leader();
    lock.lock();
    if (pending_ || seeks()) changed_.wait_for(lock, kAgain, [&] { return leaving_; });
  }
}

void EtcdMembership::renew() {
  const double begun_s = clock_seconds();
  const Status kept = etcd_.keep_alive(lease_, call_deadline());
  if (kept.code() == Code::kNotFound) return renew_lease();
  if (!kept.ok()) return;
  reached_s_ = kept_s_ = begun_s;
  if (!has_key_) put_key();
}

// Its end took the key of a leader along, which it takes again, unless another has had it meanwhile.
void EtcdMembership::renew_lease() {
  {
    const std::lock_guard lock(mutex_);
    leader_key_at_ = 0;
    if (leads_ && !pending_) pending_ = written_;
  }
  const double begun_s = clock_seconds();
  const Result<int64_t> lease = etcd_.grant_lease(options_.lease_s, call_deadline());
  if (!tried(lease.status())) return;
  reached_s_ = kept_s_ = begun_s;
  lease_ = *lease;
  put_key();
}

// Again each time the lease is kept alive, until etcd has it: where others have yet to begin they find this node by it.
void EtcdMembership::put_key() {
  has_key_ = tried(etcd_.put(key_, options_.address, lease_, call_deadline()));
}

// Whether it could be written. A key that another has written is no trouble of etcd's.
bool EtcdMembership::tried(const Status& written) {
  const std::lock_guard lock(mutex_);
  trouble_ = written.code() == Code::kAborted ? Status() : written;
  return written.ok();
}

Result<int64_t> EtcdMembership::write(const std::string& text, int64_t leader, int64_t roster) {
  std::vector<EtcdClient::Write> writes = {{roster_key(), text, 0}};
  if (leader == 0) writes.push_back({leader_key(), key_, lease_});
  return etcd_.write_if({{leader_key(), "", 0, leader}, {roster_key(), "", 0, roster}}, writes, call_deadline());
}

// REQUIRES: mutex_ is held.
void EtcdMembership::wrote(const Text& written, int64_t revision) {
  if (leader_key_at_ == 0) leader_key_at_ = revision;
  roster_at_ = revision;
  written_ = written;
  leads_ = true;
}

void EtcdMembership::write_pending() {
  Text pending;
  int64_t leader = 0, roster = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!pending_ || !status_.ok()) return;
    pending = *pending_;
    leader = leader_key_at_;
    roster = roster_at_;
  }
  const double begun_s = clock_seconds();
  const Result<int64_t> revision = write(pending.text, leader, roster);
  const bool is_written = tried(revision.status());
  if (revision.status().code() == Code::kAborted) return find_out();
  if (!is_written) return;
  reached_s_ = begun_s;
  const std::lock_guard lock(mutex_);
  wrote(pending, *revision);
  if (pending_->text == pending.text) pending_.reset();
}

namespace {

// "epoch first-key's-revision leader", then a line each: id, whether it trains, whether it owns rows, its key in etcd
// or
// "-", where it is reached.
std::string header_text(uint32_t epoch, int64_t job, NodeId leader) {
  std::ostringstream text;
  text << epoch << " " << job << " " << leader << "\n";
  return text.str();
}

std::string roster_text(uint32_t epoch, int64_t job, NodeId leader, const std::vector<Registry::Member>& members,
                        const std::vector<std::string>& keys) {
  std::ostringstream text;
  text << header_text(epoch, job, leader);
  for (size_t i = 0; i < members.size(); ++i)
    text << members[i].node << " " << members[i].worker << " " << members[i].server << " "
         << (keys.empty() ? "-" : keys[i]) << " " << members[i].address << "\n";
  return text.str();
}

struct RosterText {
  Registry::Written written;
  int64_t job = 0;
  std::vector<std::string> keys;  // of the members
};

RosterText parse_roster(const std::string& text) {
  RosterText roster;
  std::istringstream lines(text);
  lines >> roster.written.epoch >> roster.job >> roster.written.leader;
  Registry::Member member;
  for (std::string key; lines >> member.node >> member.worker >> member.server >> key >> member.address;) {
    roster.written.members.push_back(member);
    roster.keys.push_back(key);
  }
  return roster;
}

}  // namespace

// A key is not as we left it: it went with a lease, it was written by us without our hearing of that, or by another.
void EtcdMembership::find_out() {
  const Result<Keys> keys = read_keys();
  if (!keys.ok()) return;
  const std::lock_guard lock(mutex_);
  const RosterText roster = keys->roster ? parse_roster(keys->roster->value) : RosterText();
  const bool is_led = keys->leader && keys->leader->value != key_;
  if (!is_led && roster.job == job_ && roster.written.leader == id_) {
    leader_key_at_ = keys->leader ? keys->leader->modified : 0;
    roster_at_ = keys->roster->modified;
    return;
  }
  pending_.reset();
  status_ = error(Code::kAborted, "another node leads the job '", options_.job,
                  "' by now, or did until its end: etcd had not heard of this one for ", options_.lease_s,
                  " s; the others have gone on without it, and nothing more is written here");
}

void EtcdMembership::publish(uint32_t epoch, std::vector<Member> members) {
  const std::lock_guard lock(mutex_);
  published_ = true;
  pending_ = {epoch, roster_text(epoch, job_, id_, members, {})};
  changed_.notify_all();
}

uint32_t EtcdMembership::written() const {
  const std::lock_guard lock(mutex_);
  return written_.epoch;
}

Status EtcdMembership::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

Status EtcdMembership::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool EtcdMembership::reached() const {
  return clock_seconds() - reached_s_ <= options_.lease_s;
}

bool EtcdMembership::holds() const {
  const std::lock_guard lock(mutex_);
  return leads_ && status_.ok() && leader_key_at_ != 0 && clock_seconds() - kept_s_ <= options_.lease_s;
}

void EtcdMembership::seek(bool may_lead) {
  const std::lock_guard lock(mutex_);
  if (leads_) return;
  if (!seeks()) {
    found_.reset();
    changed_.notify_all();
  }
  may_lead_ = may_lead;
  seeking_s_ = clock_seconds();
}

// REQUIRES: mutex_ is held.
bool EtcdMembership::seeks() const {
  return !leads_ && !over_ && clock_seconds() - seeking_s_ < kSeek_s;
}

std::optional<Registry::Written> EtcdMembership::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

bool EtcdMembership::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void EtcdMembership::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
}

void EtcdMembership::look_for_leader() {
  bool may_lead = false;
  {
    const std::lock_guard lock(mutex_);
    if (!seeks()) return;
    may_lead = may_lead_;
  }
  const Result<Keys> keys = read_keys();
  if (!keys.ok()) return;
  RosterText roster = keys->roster ? parse_roster(keys->roster->value) : RosterText();
  std::unique_lock lock(mutex_);
  over_ = roster.job != job_;
  if (over_) return;
  found_ = roster.written;
  if (keys->leader && keys->leader->value == key_ && roster.written.leader == id_) {
    // Taken before, by a call whose answer was lost.
    leader_key_at_ = keys->leader->modified;
    wrote({roster.written.epoch, keys->roster->value}, keys->roster->modified);
    published_ = true;
    return;
  }
  const bool takes_part = std::any_of(roster.written.members.begin(), roster.written.members.end(),
                                      [&](const Member& member) { return member.node == id_; });
  if (keys->leader || !may_lead || !takes_part) return;
  // Nobody's. Its members stay as they are, keys included, for those who have yet to read their place.
  found_->leader = 0;
  lock.unlock();
  const std::string& text = keys->roster->value;
  const Text taken{roster.written.epoch + 1, header_text(roster.written.epoch + 1, roster.job, id_) +
                                                 text.substr(std::min(text.find('\n') + 1, text.size()))};
  const Result<int64_t> revision = write(taken.text, 0, keys->roster->modified);
  if (!tried(revision.status())) return;
  lock.lock();
  wrote(taken, *revision);
  published_ = true;
  found_->epoch = taken.epoch;
  found_->leader = id_;
}

Result<EtcdMembership::Roster> EtcdMembership::await_roster(double wait_s, const std::atomic<bool>* stop) {
  const Deadline deadline = Deadline::after_s(wait_s);
  for (int64_t present = 0;; std::this_thread::sleep_for(kRosterLook)) {
    if (stop != nullptr && stop->load()) return error(Code::kCancelled, "stopped while other nodes were awaited");
    STREAMVEC_ASSIGN_OR_RETURN(Roster roster, look(present));
    if (!roster.nodes.empty()) return roster;
    if (deadline.passed())
      return error(Code::kUnavailable, present, " of ", options_.nodes, " nodes of the job '", options_.job,
                   "' came within ", wait_s, " s; ",
                   trouble().ok() ? "are all started with the same --etcd, --job and --workers?" : trouble().message());
  }
}

Result<EtcdMembership::Keys> EtcdMembership::read_keys() {
  const double begun_s = clock_seconds();
  STREAMVEC_ASSIGN_OR_RETURN(const std::vector<EtcdKey> all, etcd_.list(prefix(), call_deadline()));
  reached_s_ = begun_s;
  Keys keys;
  for (const EtcdKey& key : all) {
    if (key.key == roster_key()) keys.roster = key;
    if (key.key == leader_key()) keys.leader = key;
    if (key.key.rfind(prefix() + "nodes/", 0) == 0) keys.nodes.push_back(key);
  }
  return keys;
}

// A roster without a leader is about to get one, or was left by a job that was killed as a whole: nobody of it is left
// when the oldest key of a node is ours.
Result<EtcdMembership::Roster> EtcdMembership::look(int64_t& present) {
  STREAMVEC_ASSIGN_OR_RETURN(const Keys keys, read_keys());
  if (keys.roster && keys.leader) return read_roster(keys.roster->value, keys.nodes);
  present = static_cast<int64_t>(keys.nodes.size());
  if (present < options_.nodes || keys.nodes.front().key != key_) return Roster();
  return write_first(keys);
}

Result<EtcdMembership::Roster> EtcdMembership::write_first(const Keys& keys) {
  std::vector<Member> members;
  std::vector<std::string> node_keys;
  for (int32_t i = 0; i < options_.nodes; ++i) {
    const bool only_owns = i >= options_.nodes - options_.servers;
    members.push_back({static_cast<NodeId>(i + 1), keys.nodes[static_cast<size_t>(i)].value, !only_owns,
                       only_owns || options_.servers == 0});
    node_keys.push_back(keys.nodes[static_cast<size_t>(i)].key);
  }
  const Text first{0, roster_text(0, keys.nodes.front().created, 1, members, node_keys)};
  const Result<int64_t> revision = write(first.text, 0, keys.roster ? keys.roster->modified : 0);
  if (revision.status().code() == Code::kAborted) return Roster();  // another was first: it is read next time
  STREAMVEC_RETURN_IF_ERROR(revision.status());
  {
    const std::lock_guard lock(mutex_);
    wrote(first, *revision);
  }
  return read_roster(first.text, keys.nodes);
}

Result<EtcdMembership::Roster> EtcdMembership::read_roster(const std::string& text, const std::vector<EtcdKey>& nodes) {
  const RosterText read = parse_roster(text);
  Roster roster;
  roster.rank = -1;
  roster.leader = read.written.leader;
  roster.job = read.job;
  std::vector<Member> only_own;
  for (size_t i = 0; i < read.keys.size(); ++i) {
    const Member& member = read.written.members[i];
    if (read.keys[i] == key_) roster.rank = static_cast<int32_t>(roster.nodes.size() + only_own.size());
    (member.worker ? roster.nodes : only_own).push_back(member);
  }
  if (roster.rank < 0) {
    // Others have begun. No key is older than the first one's, and no two are of one age: nobody else has this id.
    const auto own = std::find_if(nodes.begin(), nodes.end(), [&](const EtcdKey& key) { return key.key == key_; });
    const int64_t id = own == nodes.end() ? 0 : own->created - read.job + 1;
    if (roster.nodes.empty() || id <= 1 || id > std::numeric_limits<NodeId>::max())
      return error(Code::kUnavailable, "the roster of the job '", options_.job, "' in etcd cannot be read; is another ",
                   "version of streamvec running? Choose another --job, or wait for its end");
    roster.joins = true;
    roster.rank = static_cast<int32_t>(roster.nodes.size());
    roster.nodes.push_back({static_cast<NodeId>(id), options_.address, true, only_own.empty()});
  }
  roster.nodes.insert(roster.nodes.end(), only_own.begin(), only_own.end());
  const std::lock_guard lock(mutex_);
  job_ = read.job;
  id_ = roster.nodes[static_cast<size_t>(roster.rank)].node;
  return roster;
}

}  // namespace streamvec
