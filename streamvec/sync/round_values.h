// What a ring keeps in step, as the node sees it that makes its rounds (cluster/ring_node.h): changes of values
// (dense_replica.h) or slopes, of which all make one step (shared_step.h). In a round every node brings its own, the
// mean of all goes round, and each takes it. State machines: no clock, thread or network.
//
// A round that a node's death has cut short is over on some nodes and not on others. Where nobody has its means, all
// take back what they brought (undo()) and bring it to the next. Where one has them, every node's part is in what that
// one agreed to: the others get it as it is (adopt()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace streamvec {

class RoundValues {
 public:
  virtual ~RoundValues() = default;

  virtual int64_t size() const = 0;     // values that the next round takes
  virtual int64_t changes() const = 0;  // of them; what is behind these are sums, which have to be exact
  // Of how many nodes the ring is, from the next round on.
  virtual void set_nodes(int64_t nodes) = 0;
  // Where the parts of a round's values begin, one for each node, if it matters; empty: they are equal.
  virtual std::span<const size_t> parts() const { return {}; }
  // Of one node alone: what all get in place of the mean of that part. It may take back what it did (undo()).
  virtual void make_part(size_t /*part*/, std::span<float> /*means*/) {}

  // How much was trained here in all, in the units of `pull`; to be told before bring() and take().
  virtual void set_trained(double steps) = 0;
  // A new round: writes what this node has since the last one. REQUIRES: values.size() == size(); the last was taken.
  virtual void bring(std::span<float> values) = 0;
  // Some need the mean of what all brought, and bring so many values more; 0: there are none.
  virtual int64_t second_size() const { return 0; }
  virtual void bring_second(std::span<const float>, std::span<float>) {}
  // The round's end: the means, over all nodes, of what they brought.
  virtual void take(std::span<const float> means, std::span<const float> second_means) = 0;

  // Of tables that grow: rows that are in use anywhere, as the last round's means say, and that the next is to take.
  // Between two rounds, on all nodes alike.
  virtual int64_t rows_met() const { return 0; }
  virtual void take_rows_met(int64_t /*rows*/) {}

  // A last round, of all that rounds have left out: after it every node has the same. 0: nothing was.
  virtual int64_t rest_size() const { return 0; }
  virtual void bring_rest(std::span<float>) {}
  virtual void take_rest(std::span<const float>) {}

  // The round under way, if there is one, comes to nothing.
  virtual void undo() = 0;
  // What all agreed on by the last round, and what the next begins from. REQUIRES: no round is under way.
  virtual int64_t agreed_size() const = 0;
  virtual void copy_agreed(std::span<float> values) = 0;
  // What another agreed to, in place of take() or take_rest() by a node that has not the means; or by one that joins,
  // before it has brought anything.
  virtual void adopt(std::span<const float> agreed) = 0;
};

}  // namespace streamvec
