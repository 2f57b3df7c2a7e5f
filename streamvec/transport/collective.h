// What all nodes of a group do together. Every rank calls the same functions in the same order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/core/status.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/transport/transport.h"
#include "streamvec/transport/value_form.h"

namespace streamvec {

// Not thread-safe. After an error the ranks may differ in what they hold and what they expect, and values are half
// summed: every later call gives the same error, and the group has to be made anew.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Leaves every rank with the mean of all, the same bits everywhere. kDeadlineExceeded or kUnavailable when a rank
  // dies or frames get lost, kInvalidArgument when ranks do not bring as many values.
  virtual Status all_reduce_mean(std::span<float> values, Deadline deadline) = 0;
  // Leaves every rank with what each brought, by rank. Sizes may differ.
  virtual Status all_gather(std::string_view mine, std::vector<std::string>& all, Deadline deadline) = 0;
  // Leaves every rank with the bytes of `root`. REQUIRES: 0 <= root < ranks().
  virtual Status broadcast(std::string& bytes, int root, Deadline deadline) = 0;
};

// Each rank sends to the next and receives from the one before (Patarasuk, Yuan 2009): 2(n-1)/n of the values cross
// each link, whatever n is. Values travel in chunks, so that adding, sending and receiving overlap.
class RingCollective final : public Collective {
 public:
  struct Options {
    int64_t chunk_bytes = int64_t{256} << 10;     // less: overlaps sooner, more frames
    int64_t queue_bytes_max = int64_t{16} << 20;  // waits while so much is queued for the next rank
    // Of groups that are formed anew: looked at some 50 times a second while a rank waits; true ends that with
    // kAborted.
    std::function<bool()> interrupted = nullptr;
    // Of the same: kUnavailable when nothing has come from the rank before for so long, counted while this one ran.
    // Ranks that wait tell the next that they live. 0: waits end by their deadline alone.
    double silent_max_s = 0;
    // Borrowed: it helps to put values into the form in which they travel, and back, while a function of this group is
    // under way. Longer chunks pay then.
    ThreadTeam* team = nullptr;
    // Values of all_reduce_mean() travel rounded to bf16, each time that one more rank has added its own: half the
    // bytes, and a mean that is off by some thousandth.
    bool in_bf16 = false;
  };
  // Ranks are places in `ring`, the same on all of them; the next must have been added as a peer. REQUIRES: `ring`
  // holds transport.self() once; nobody else receives from `transport` (Channels splits one), and no frames of an
  // earlier ring are in it; it outlives this.
  RingCollective(Transport& transport, std::vector<NodeId> ring)
      : RingCollective(transport, std::move(ring), Options{}) {}
  RingCollective(Transport& transport, std::vector<NodeId> ring, Options options);

  // The group anew, of these nodes and under a number that is higher than the last (the first is 0): what was under way
  // is given up, frames of earlier groups are dropped, and those of later ones wait until this rank forms them, too.
  void form(std::vector<NodeId> ring, uint32_t number);

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(ring_.size()); }
  const std::vector<NodeId>& ring() const { return ring_; }
  Status all_reduce_mean(std::span<float> values, Deadline deadline) override;
  // The same in four bits a value (fourbit_form()), all but the last `whole`. What that leaves out of a rank's sums
  // goes with the next call: `left_out`, as long as values, is this rank's; all zeros at first, and when a group was
  // formed or parts begin elsewhere, here and below.
  Status all_reduce_mean_in_four_bits(std::span<float> values, size_t whole, std::span<float> left_out,
                                      Deadline deadline);
  // Of all values each rank has one part, also one of none.
  struct Parts {
    std::span<const size_t> begins;                                 // of each, and the end
    std::function<void(size_t part, std::span<float> means)> make;  // called once, for this rank's own
  };
  // Leaves every rank with what the ranks made of the means of their parts.
  Status all_reduce_made(std::span<float> values, const Parts& parts, Deadline deadline);
  // The same with sums in eight bits a value (eightbit_form()), and in four what is made of them.
  Status all_reduce_made_in_few_bits(std::span<float> values, size_t whole, std::span<float> left_out,
                                     const Parts& parts, Deadline deadline);
  Status all_gather(std::string_view mine, std::vector<std::string>& all, Deadline deadline) override;
  Status broadcast(std::string& bytes, int root, Deadline deadline) override;
  // The rank before has begun an operation that this one has not, or does so in time.
  bool is_called(Deadline deadline);
  // Of a rank that is at no operation for long: to be called now and then, so that the next hears that it lives.
  void tell_alive();

 private:
  enum class Kind : uint32_t { kReduce, kBytes, kAlive };
  int place(int64_t rank) const { return static_cast<int>(((rank % ranks()) + ranks()) % ranks()); }
  NodeId next() const { return ring_[place(rank_ + 1)]; }
  NodeId previous() const { return ring_[place(rank_ - 1)]; }

  // In what form sums go round, and then their means or what is made of them: the same where `parts` is null.
  struct Forms {
    ValueForm &sums, &outcome;
  };
  Status reduce(std::span<float> values, const Parts* parts, Forms forms, Deadline deadline);
  template <typename Use>
  Status for_each_chunk(std::span<float> part, const Use& use) const;
  // Calls use(place of its first value, piece, its bytes) for all of a chunk, on several threads where there are some.
  template <typename Value, typename Use>
  void for_each_piece(std::span<const float> values, std::span<Value> chunk, const ValueForm& form, char* bytes,
                      const Use& use) const;
  Status send_part(std::span<const float> values, std::span<float> part, ValueForm& form, Deadline deadline);
  Status reduce_part(int64_t step, std::span<float> values, std::span<float> part, Forms forms, Deadline deadline);
  Status send_values(std::span<const float> values, std::span<const float> chunk, ValueForm& form, std::string& bytes,
                     Deadline deadline);
  Status receive_values(std::span<const float> values, std::span<const float> chunk, const ValueForm& form,
                        std::string& frame, Deadline deadline);
  Status reduce_chunk(int64_t step, std::span<float> values, std::span<float> chunk, ValueForm& form,
                      Deadline deadline);
  Status make_part(std::span<float> values, std::span<float> part, const Parts& parts, Forms forms, Deadline deadline);
  Status send_bytes(std::string_view bytes, Deadline deadline);
  Status receive_bytes(std::string& bytes, bool on, Deadline deadline);
  // A frame of its own for the next rank; `size` is that of the whole.
  Status send_chunk(Kind kind, int64_t size, std::string_view bytes, Deadline deadline);
  // A frame as it came, header and all, for the next rank.
  Status pass_on(std::string frame, Deadline deadline);
  // The next frame of the one before; checks order and kind, and tells the size of the whole.
  Status receive_chunk(Kind kind, std::string& frame, int64_t& size, Deadline deadline);
  Status take(Deadline deadline, std::string& frame);
  // Whether it is one of this group's, for us; one of a later group is put by.
  bool is_ours(NodeId from, std::string& frame);
  Status note_silence(double seconds);
  Status keep(Status status);

  Transport& transport_;
  std::vector<NodeId> ring_;
  const Options options_;
  uint32_t number_ = 0;
  int rank_ = -1;
  uint64_t sent_ = 0, received_ = 0;
  std::deque<std::string> stash_;                      // came while we waited to send
  std::vector<std::pair<NodeId, std::string>> early_;  // of later groups
  double silent_s_ = 0;                                // waited since the rank before was heard
  double told_alive_s_ = 0;                            // when the next was told
  Status broken_;
};

}  // namespace streamvec
