#include "streamvec/transport/mpi/mpi_transport.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "streamvec/transport/inbox.h"
#include "streamvec/transport/mpi/abort_at_exit.h"

namespace streamvec {
namespace {

using Clock = std::chrono::steady_clock;

// A message is one frame, or small frames together (each after its length in 4 bytes), or the last word of a rank; or
// nothing but the question whether a rank is alive, or the answer, which MPI's thread gives whatever the others do.
constexpr int kFrameTag = 1, kBatchTag = 2, kFarewellTag = 3, kAskTag = 4, kAliveTag = 5;
constexpr size_t kLength = sizeof(uint32_t);
constexpr size_t kSmallBelow = 16 << 10, kBatchBytes = 64 << 10;
constexpr size_t kUnderWayMax = 64;  // messages to a rank that MPI knows of at once
constexpr auto kAskEvery = std::chrono::milliseconds(500), kAskAtLeast = std::chrono::milliseconds(2000);
constexpr double kSpeaks_s = 60;  // for the first of the ranks that are left to print what came of all

Status mpi_error(const char* doing, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int size = 0;
  MPI_Error_string(code, text, &size);
  return error(Code::kUnavailable, "MPI failed at ", doing, ": ", std::string(text, static_cast<size_t>(size)));
}

// A message and the operation that moves it. Its place must not change meanwhile, so it lives in a deque.
struct Moving {
  std::string bytes;
  int tag = kFrameTag;
  int64_t frames = 1, frame_bytes = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

// The next message of what is queued. REQUIRES: queued is not empty.
Moving take_message(std::deque<std::string>& queued) {
  Moving message;
  if (queued.front().size() >= kSmallBelow || queued.size() == 1) {
    message.bytes = std::move(queued.front());
    message.frame_bytes = static_cast<int64_t>(message.bytes.size());
    queued.pop_front();
    return message;
  }
  message.tag = kBatchTag;
  for (message.frames = 0; !queued.empty() && queued.front().size() < kSmallBelow && message.bytes.size() < kBatchBytes;
       ++message.frames) {
    const auto size = static_cast<uint32_t>(queued.front().size());
    message.bytes.append(reinterpret_cast<const char*>(&size), kLength);
    message.bytes += queued.front();
    message.frame_bytes += size;
    queued.pop_front();
  }
  return message;
}

// False for a message that take_message() does not write.
bool for_each_frame(Moving& message, const std::function<void(std::string)>& use) {
  if (message.tag != kBatchTag) return use(std::move(message.bytes)), true;
  for (size_t at = 0; at < message.bytes.size();) {
    uint32_t size = 0;
    if (message.bytes.size() - at < kLength) return false;
    std::memcpy(&size, message.bytes.data() + at, kLength);
    at += kLength;
    if (message.bytes.size() - at < size) return false;
    use(message.bytes.substr(at, size));
    at += size;
  }
  return true;
}

// What goes to and comes from one rank. `queued` is of the lock, the rest of MPI's thread.
struct Peer {
  std::deque<std::string> queued;
  int64_t queued_bytes = 0;  // and under way
  std::deque<Moving> sends, receives;
  bool farewell_sent = false, farewell_came = false;
  Clock::time_point heard = Clock::now();

  // Whoever says farewell may be stopped after that, and MPI_Finalize would wait for it: it answers once more first.
  bool has_parted(Clock::time_point end_begun) const {
    return farewell_sent && farewell_came && receives.empty() && heard >= end_begun;
  }
};

// Of a transport that has broken off: reachable, and never freed.
std::vector<Peer>*& the_kept() {
  static std::vector<Peer>* kept = nullptr;
  return kept;
}

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Ranks final : public MpiTransport {
 public:
  explicit Ranks(const Options& options) : options_(options) {}

  ~Ranks() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    work_.notify_all();
    if (!thread_.joinable()) return;
    ended_->get_future().wait();
    breaks_off_ ? thread_.detach() : thread_.join();
  }

  Status start() {
    const auto started = std::make_shared<std::promise<Status>>();
    auto status = started->get_future();
    thread_ = std::thread([this, started, ended = ended_] {
      const Status began = begin();
      started->set_value(began);
      if (began.ok()) run();
      // Read before `ended` says that this object may go. Of MPI's open requests what they point to has to stay.
      if (breaks_off_) the_kept() = new std::vector<Peer>(std::move(peers_));
      const bool breaks_off = breaks_off_;
      const int code_min = code_min_;
      const double patience_s = patience_s_;
      if (!breaks_off) return ended->set_value();
      abort_at_exit(code_min, patience_s, [&] { ended->set_value(); });
    });
    return status.get();
  }

  NodeId self() const override { return static_cast<NodeId>(rank_); }
  int ranks() const override { return ranks_; }
  void add_peer(NodeId, const std::string&) override {}  // all ranks are there from the start

  void remove_peer(NodeId node) override {
    if (static_cast<int>(node) >= ranks_) return;
    const std::lock_guard lock(mutex_);
    totals_.frames_dropped += static_cast<int64_t>(peers_[node].queued.size());
    for (const std::string& frame : peers_[node].queued)
      peers_[node].queued_bytes -= static_cast<int64_t>(frame.size());
    peers_[node].queued.clear();
  }

  void send(NodeId to, std::string frame) override {
    const auto size = static_cast<int64_t>(frame.size());
    if (to == self()) return count(inbox_.push(to, std::move(frame), options_.queue_bytes_max), size);
    {
      const std::lock_guard lock(mutex_);
      const bool fits = to < peers_.size() && !broken_ && peers_[to].queued_bytes + size <= options_.queue_bytes_max;
      if (!fits) {
        ++totals_.frames_dropped;
        return;
      }
      peers_[to].queued.push_back(std::move(frame));
      peers_[to].queued_bytes += size;
      has_work_ = true;
    }
    work_.notify_one();
  }

  Status receive(Deadline deadline, NodeId& from, std::string& frame) override {
    return inbox_.receive(deadline, from, frame);
  }

  int64_t queued_bytes(NodeId to) const override {
    if (to == self()) return inbox_.bytes_from(to);
    const std::lock_guard lock(mutex_);
    return to < peers_.size() ? peers_[to].queued_bytes : 0;
  }

  TransportTotals totals() const override {
    const std::lock_guard lock(mutex_);
    TransportTotals totals = totals_;
    inbox_.add_to(totals);
    return totals;
  }

 private:
  void count(bool sent, int64_t size) {
    const std::lock_guard lock(mutex_);
    totals_.frames_sent += sent;
    totals_.bytes_sent += sent ? size : 0;
    totals_.frames_dropped += !sent;
  }

  Status begin() {
    int has_begun = 0, level = 0;
    MPI_Initialized(&has_begun);
    if (has_begun) return error(Code::kFailedPrecondition, "MPI can be started once in a process");
    // Errors come back as values; the default would end the program from inside MPI.
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level); code != MPI_SUCCESS)
      return mpi_error("starting", code);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    peers_ = std::vector<Peer>(static_cast<size_t>(ranks_));
    return {};
  }

  void run() {
    Clock::time_point last_moved = Clock::now();
    while (!is_closing() && !broken_) {
      if (move()) {
        last_moved = Clock::now();
      } else {
        idle(Clock::now() - last_moved);
      }
    }
    end();
  }

  bool is_closing() const {
    const std::lock_guard lock(mutex_);
    return closing_;
  }

  // MPI has no call that waits for either side, so it is asked again and again: at once while frames come, seldom
  // when none did for a while.
  void idle(Clock::duration quiet) {
    using std::chrono::microseconds;
    if (quiet < microseconds(20)) return;  // to yield would cost a time slice on a busy machine
    const auto wait = quiet < std::chrono::seconds(1) ? microseconds(50) : microseconds(500);
    std::unique_lock lock(mutex_);
    work_.wait_for(lock, wait, [&] { return has_work_ || closing_; });
    has_work_ = false;
  }

  // One look at everything; whether anything moved.
  bool move() {
    bool moved = false;
    for (int rank = 0; rank < ranks_ && !broken_; ++rank)
      if (rank != rank_) moved |= start_sends(rank) | finish_sends(rank) | finish_receives(rank);
    return !broken_ && (moved | match());
  }

  bool start_sends(int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    bool moved = false;
    while (peer.sends.size() < kUnderWayMax) {
      {
        const std::lock_guard lock(mutex_);
        if (peer.queued.empty()) return moved;
        peer.sends.push_back(take_message(peer.queued));
      }
      Moving& send = peer.sends.back();
      check("sending", MPI_Isend(send.bytes.data(), static_cast<int>(send.bytes.size()), MPI_BYTE, rank, send.tag,
                                 MPI_COMM_WORLD, &send.request));
      moved = true;
    }
    return moved;
  }

  bool finish_sends(int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    bool moved = false;
    for (; !peer.sends.empty() && is_done(peer.sends.front()); moved = true) {
      const std::lock_guard lock(mutex_);
      totals_.frames_sent += peer.sends.front().frames;
      totals_.bytes_sent += peer.sends.front().frame_bytes;
      peer.queued_bytes -= peer.sends.front().frame_bytes;
      peer.sends.pop_front();
    }
    return moved;
  }

  bool finish_receives(int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    bool moved = false;
    for (; !peer.receives.empty() && is_done(peer.receives.front()); moved = true) {
      const auto use = [&](std::string frame) { inbox_.push(static_cast<NodeId>(rank), std::move(frame)); };
      if (!for_each_frame(peer.receives.front(), use)) check("reading a message", MPI_ERR_TRUNCATE);
      peer.receives.pop_front();
    }
    return moved;
  }

  // Begins to receive what has come, while the inbox has room; else it only says that this rank is alive.
  bool match() {
    const int tag = inbox_.bytes() > options_.inbox_bytes_max ? kAskTag : MPI_ANY_TAG;
    int came = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check("looking for frames", MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &came, &message, &status));
    if (broken_ || !came) return false;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Peer& peer = peers_[static_cast<size_t>(status.MPI_SOURCE)];
    peer.heard = Clock::now();
    if (status.MPI_TAG == kFarewellTag || status.MPI_TAG == kAskTag || status.MPI_TAG == kAliveTag) {
      check("receiving", MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE));
      peer.farewell_came |= status.MPI_TAG == kFarewellTag;
      if (status.MPI_TAG == kAskTag) say(status.MPI_SOURCE, kAliveTag);
      return true;
    }
    Moving& receive = peer.receives.emplace_back();
    receive.bytes.resize(static_cast<size_t>(size));
    receive.tag = status.MPI_TAG;
    check("receiving", MPI_Imrecv(receive.bytes.data(), size, MPI_BYTE, &message, &receive.request));
    return true;
  }

  bool is_done(Moving& moving) {
    int done = 0;
    check("moving a frame", MPI_Test(&moving.request, &done, MPI_STATUS_IGNORE));
    return done && !broken_;
  }

  void check(const char* doing, int code) {
    if (code == MPI_SUCCESS || broken_) return;
    broken_ = true;
    inbox_.close(mpi_error(doing, code));
  }

  // Everybody says farewell after its last frame; MPI_Finalize waits for ever, so it is called only when all did.
  void end() {
    const Clock::time_point begun = Clock::now(), until = begun + duration_of(options_.farewell_s);
    Clock::time_point asked = begun;
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_) say(rank, kAskTag);  // before the farewell, so that it is answered before the other can end
    while (!broken_ && Clock::now() < until && waits_for_any(begun)) {
      inbox_.close();  // what still comes is for nobody
      if (!move()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      for (int rank = 0; rank < ranks_; ++rank) say_farewell(rank);
      if (Clock::now() - asked < kAskEvery) continue;
      asked = Clock::now();
      for (int rank = 0; rank < ranks_; ++rank)
        if (rank != rank_ && !peers_[static_cast<size_t>(rank)].farewell_came) say(rank, kAskTag);
    }
    breaks_off_ = broken_ || !has_parted(begun);
    if (breaks_off_) {
      code_min_ = broken_ || waits_for_any(begun);
      patience_s_ = broken_ || speaks_for_all(begun) ? 0 : kSpeaks_s + options_.silent_s;
      wait_for_closing();
    }
    inbox_.close();
    if (!breaks_off_) MPI_Finalize();
  }

  // After an error the owner is told by receive(); the program ends when the owner lets go.
  void wait_for_closing() {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [&] { return closing_; });
  }

  void say_farewell(int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == rank_ || peer.farewell_sent || !peer.sends.empty() || queued_bytes(static_cast<NodeId>(rank)) > 0)
      return;
    say(rank, kFarewellTag);
    peer.farewell_sent = true;
  }

  void say(int rank, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    check("parting", MPI_Isend(nullptr, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request));
    MPI_Request_free(&request);
  }

  bool has_parted(Clock::time_point begun) const {
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_ && !peers_[static_cast<size_t>(rank)].has_parted(begun)) return false;
    return true;
  }

  // Of what was asked since the end began, nothing was answered.
  bool is_silent(int rank, Clock::time_point begun) const {
    const auto silent = duration_of(options_.silent_s);
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    return rank != rank_ && !peer.has_parted(begun) &&
           Clock::now() - std::max(peer.heard, begun + kAskAtLeast - silent) >= silent;
  }

  bool waits_for_any(Clock::time_point begun) const {
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_ && !peers_[static_cast<size_t>(rank)].has_parted(begun) && !is_silent(rank, begun)) return true;
    return false;
  }

  // The first of those that are not silent.
  bool speaks_for_all(Clock::time_point begun) const {
    for (int rank = 0; rank < rank_; ++rank)
      if (!is_silent(rank, begun)) return false;
    return true;
  }

  const Options options_;
  int rank_ = 0, ranks_ = 1;
  Inbox inbox_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  bool closing_ = false, has_work_ = false;
  std::atomic<bool> broken_ = false;
  std::vector<Peer> peers_;
  TransportTotals totals_;
  bool breaks_off_ = false;  // since not all have parted; this and what follows: of MPI's thread until `ended_`
  int code_min_ = 0;         // of the whole program then
  double patience_s_ = 0;
  const std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();  // of both threads
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MpiTransport>> MpiTransport::start(const Options& options) {
  auto ranks = std::make_unique<Ranks>(options);
  STREAMVEC_RETURN_IF_ERROR(ranks->start());
  return std::unique_ptr<MpiTransport>(std::move(ranks));
}

}  // namespace streamvec
