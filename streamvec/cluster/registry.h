// Where it is written down who leads a job and who takes part, for those who come later and for those who have to lead
// when the leader is gone (etcd_membership.h). A membership is in force only once it is written there, each over the
// one before, so that there is one line of them whoever leads: two halves of a cluster can never both go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/transport/transport.h"

namespace streamvec {

// Of the time after which a node counts as gone: when a leader that is silent loses its place, and others look for
// another, so that there is one by then.
constexpr double kLeaderGone = 0.75;

// A node's own view of it. Thread-safe; nothing waits.
class Registry {
 public:
  struct Member {
    NodeId node = 0;
    std::string address;
    bool worker = true, server = true;
  };
  struct Written {
    uint32_t epoch = 0;
    NodeId leader = 0;
    std::vector<Member> members;
  };
  virtual ~Registry() = default;
  // Of the leader: it is written as soon as that is possible, the newest only.
  virtual void publish(uint32_t epoch, std::vector<Member> members) = 0;
  virtual uint32_t written() const = 0;  // the last of them that is
  // What the last attempt to write anything there failed with, also where it was not reached; ok again once one
  // succeeds.
  virtual Status trouble() const = 0;
  // kAborted: another node leads in this one's place, or did until the job's end.
  virtual Status status() const = 0;
  // It could be reached within the time after which a node counts as gone. A leader of which that is not so may have a
  // successor by now.
  virtual bool reached() const = 0;
  // This node leads at this very moment, beyond doubt: one that was stopped may have led for long without any right to.
  virtual bool holds() const = 0;

  // Of a node that does not hear the leader, again and again as long as it does not: looks who leads, and where nobody
  // does and it `may_lead`, makes this node the leader.
  virtual void seek(bool may_lead) = 0;
  // What has come of it lately. This node leads when `leader` is its own, from that epoch on, which is a new number:
  // no membership has it. The members are those of the last one that was written.
  virtual std::optional<Written> found() const = 0;
  // The job has ended as it should, or another has begun in its place.
  virtual bool over() const = 0;

  // Of the leader: the model is written, and nobody needs to take its place.
  virtual void finish() = 0;
};

}  // namespace streamvec
