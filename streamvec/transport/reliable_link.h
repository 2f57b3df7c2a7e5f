// Messages between two nodes, each delivered once and in order, over a network that may lose, repeat, delay and reorder
// what it is given (a connection that breaks and is made again does all of that). Numbers, acknowledgements, resending.
// A pure state machine: time and frames are handed in. A node that was restarted is another node, with links of its
// own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

class ReliableLink {
 public:
  struct Options {
    double resend_after_s = 0.25;  // shorter: faster after a loss, and more sent twice on a slow network
    int64_t ahead_max = 1'024;     // frames kept that came before an earlier one
  };
  explicit ReliableLink(Options options) : options_(options) {}

  // Appends the frame to send. The message is kept until the other side has it.
  void send(std::string message, double now_s, std::vector<std::string>& frames);
  // Appends the messages that are complete with this frame, and frames to send back. kInvalidArgument for a frame that
  // send() does not write.
  Status receive(std::string_view frame, double now_s, std::vector<std::string>& messages,
                 std::vector<std::string>& frames);
  // Appends what has to be sent again.
  void tick(double now_s, std::vector<std::string>& frames);

  bool idle() const { return unacknowledged_.empty(); }
  // What the link was seen to carry of late, at the best: the bytes of long messages over the time until they were
  // acknowledged, less that of the quickest message ever. 0: not known.
  double bytes_per_s() const;
  // Since when the oldest message has waited for its acknowledgement; `now_s` when none does.
  double waiting_since_s(double now_s) const { return idle() ? now_s : unacknowledged_.front().first_sent_s; }

 private:
  struct Sent {
    uint64_t number = 0;
    double first_sent_s = 0, sent_s = 0;
    std::string message;
  };
  struct Carried {
    size_t bytes = 0;
    double in_s = 0;
  };
  std::string frame(uint64_t number, std::string_view message) const;
  void take_acknowledged(uint64_t last, double now_s);

  const Options options_;
  uint64_t sent_ = 0, received_ = 0;  // numbers of the last message sent, and of the last delivered
  std::deque<Sent> unacknowledged_;
  std::deque<Carried> carried_;  // the last long messages
  double way_s_ = 0;             // there and back, at the best; 0: not known
  std::map<uint64_t, std::string> ahead_;
};

}  // namespace streamvec
