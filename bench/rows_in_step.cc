// What does it cost to keep a row in step between nodes, without the network?
//
// Run: bench_rows_in_step [ROWS [NODES [DIM]]]
// NODES replicas and owners in one thread: every replica changes ROWS of its rows, pushes them, the owners take them in
// and answer, the replicas apply the answers. Prints the processor time for each row that a node pushes, by part.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "streamvec/core/heap.h"
#include "streamvec/core/random.h"
#include "streamvec/sync/replica.h"
#include "streamvec/sync/row_server.h"

namespace {

using namespace streamvec;

constexpr int64_t kTableRows = 100'000;
constexpr int kRounds = 20;

double used_s() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// As trained rows are, not zero: what lies near that may take a processor longer.
void begin(RowKey key, std::span<float> row) {
  Random random(key);
  for (float& value : row) value = random.uniform() - 0.5f;
}

struct Node {
  Matrix tables[2];
  std::unique_ptr<Replica> replica;
  std::unique_ptr<RowServer> server;
};

struct Cost {
  double push_s = 0, wire_s = 0, owner_s = 0, apply_s = 0;
  int64_t rows = 0, bytes = 0;
};

class Cluster {
 public:
  Cluster(Admission admission, CodecKind codec, int nodes, int64_t dim) : nodes_(static_cast<size_t>(nodes)) {
    View view{1, {}, {}};
    for (NodeId id = 1; id <= nodes_.size(); ++id) view.workers.push_back(id);
    view.servers = view.workers;
    for (NodeId id = 1; id <= nodes_.size(); ++id) {
      Node& node = nodes_[id - 1];
      SyncOptions options;
      options.self = id;
      options.scheme.admission = admission;
      options.scheme.codec = codec;
      options.dim = dim;
      options.key_end = 2 * kTableRows;
      options.initial = begin;
      for (size_t k = 0; k < 2; ++k) {
        node.tables[k] = std::move(Matrix::make(kTableRows, dim)).value();
        for (int64_t i = 0; i < kTableRows; ++i)
          begin(2 * static_cast<RowKey>(i) + k, node.tables[k].view().row_span(i));
      }
      node.replica = std::move(Replica::make(options, {&node.tables[0], &node.tables[1]})).value();
      node.server = std::move(make_row_server(options)).value();
    }
    for (NodeId id = 1; id <= nodes_.size(); ++id) {
      Outbox out;
      nodes_[id - 1].server->set_view(view, out);
      nodes_[id - 1].replica->set_view(view, out);
      deliver(id, out);
    }
    cost_ = {};
  }

  void round(const std::vector<RowKey>& due, float step) {
    for (Node& node : nodes_)
      for (const RowKey key : due)
        for (float& value : node.tables[key % 2].view().row_span(key / 2)) value += step = -0.999f * step;
    for (NodeId id = 1; id <= nodes_.size(); ++id) {
      Outbox out;
      timed(cost_.push_s, [&] { nodes_[id - 1].replica->begin(due, out); });
      cost_.rows += static_cast<int64_t>(due.size());
      deliver(id, out);
    }
  }
  const Cost& cost() const { return cost_; }

 private:
  static void timed(double& sum, const std::function<void()>& work) {
    const double begin = used_s();
    work();
    sum += used_s() - begin;
  }

  void deliver(NodeId from, Outbox& out) {
    for (Outgoing& outgoing : out) {
      Message message;
      timed(cost_.wire_s, [&] {
        const std::string bytes = encode(outgoing.message);
        cost_.bytes += static_cast<int64_t>(bytes.size());
        message = std::move(decode_message(bytes, {.key_end = 2 * kTableRows})).value();
      });
      Node& node = nodes_[outgoing.to - 1];
      Outbox answers;
      const bool to_owner = message.kind == MessageKind::kPush || message.kind == MessageKind::kKnown ||
                            message.kind == MessageKind::kGiven || message.kind == MessageKind::kTaken;
      timed(to_owner ? cost_.owner_s : cost_.apply_s, [&] {
        const Status status =
            to_owner ? node.server->receive(from, message, answers) : node.replica->receive(from, message, answers);
        STREAMVEC_CHECK(status.ok());
      });
      deliver(outgoing.to, answers);
    }
  }

  std::vector<Node> nodes_;
  Cost cost_;
};

void measure(const char* name, Admission admission, CodecKind codec, int64_t rows, int nodes, int64_t dim) {
  Cluster cluster(admission, codec, nodes, dim);
  Random random(1);
  for (int i = 0; i < kRounds; ++i) {
    std::vector<RowKey> due;
    const auto chance = static_cast<float>(rows) / static_cast<float>(2 * kTableRows);
    for (RowKey key = 0; key < 2 * kTableRows; ++key)
      if (random.uniform() < chance) due.push_back(key);
    cluster.round(due, 0.01f);
  }
  const Cost& cost = cluster.cost();
  const auto each = [&](double seconds) { return 1e9 * seconds / static_cast<double>(cost.rows); };
  std::printf("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", name, std::string(name_of(codec)).c_str(),
              each(cost.push_s), each(cost.owner_s), each(cost.apply_s), each(cost.wire_s),
              each(cost.push_s + cost.owner_s + cost.apply_s + cost.wire_s),
              static_cast<double>(cost.bytes) / static_cast<double>(cost.rows));
}

}  // namespace

int main(int argc, char** argv) {
  keep_large_blocks();  // as nodes do
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 16'000;
  const int nodes = argc > 2 ? std::atoi(argv[2]) : 4;
  const int64_t dim = argc > 3 ? std::atoll(argv[3]) : 200;
  std::printf("ns of a processor for each row that a node pushes\n\n");
  std::printf(
      "| scheme | codec | push | owner | apply | messages | all | bytes |\n|---|---|---:|---:|---:|---:|---:|---:|\n");
  for (const CodecKind codec : {CodecKind::kOneBit, CodecKind::kFourBit, CodecKind::kFp16}) {
    measure("bsp", Admission::kBsp, codec, rows, nodes, dim);
    measure("async", Admission::kAsync, codec, rows, nodes, dim);
  }
  return 0;
}
