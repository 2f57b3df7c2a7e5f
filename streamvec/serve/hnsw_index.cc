#include "streamvec/serve/hnsw_index.h"

// Its prefetches read past the end of a full list of links; its distances are not used here (below).
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "streamvec/core/memory.h"
#include "streamvec/core/threads.h"
#include "streamvec/kernel/top_k.h"

namespace streamvec {
namespace {

// hnswlib's own distances are compiled for one kind of CPU; ours are chosen at run time.
class CosineSpace final : public hnswlib::SpaceInterface<float> {
 public:
  explicit CosineSpace(int64_t dim) : dim_(dim) {}
  size_t get_data_size() override { return static_cast<size_t>(dim_) * sizeof(float); }
  hnswlib::DISTFUNC<float> get_dist_func() override { return distance; }
  void* get_dist_func_param() override { return &dim_; }

 private:
  static float distance(const void* a, const void* b, const void* dim) {
    return 1 -
           inner_product(static_cast<const float*>(a), static_cast<const float*>(b), *static_cast<const int64_t*>(dim));
  }
  int64_t dim_;
};

class Graph final : public HnswIndex {
 public:
  Graph(int64_t rows, int64_t dim, const Options& options)
      : space_(dim),
        graph_(&space_, static_cast<size_t>(rows), static_cast<size_t>(options.links),
               static_cast<size_t>(options.breadth_build), options.seed),
        breadth_(options.breadth) {}

  void add(const float* row, Slot slot) { graph_.addPoint(row, static_cast<hnswlib::labeltype>(slot)); }

  std::vector<Neighbour> search(std::span<const float> unit, std::span<const Slot> excluded, int32_t k) const override {
    const size_t wanted = std::min(static_cast<size_t>(k) + excluded.size(), graph_.cur_element_count);
    if (wanted == 0) return {};
    auto nearest = graph_.searchKnn(unit.data(), std::max(wanted, static_cast<size_t>(breadth_)));
    std::vector<Neighbour> found;
    for (; !nearest.empty(); nearest.pop()) {
      const auto slot = static_cast<Slot>(nearest.top().second);
      if (std::find(excluded.begin(), excluded.end(), slot) == excluded.end())
        found.push_back({slot, 1 - nearest.top().first});
    }
    std::sort(found.begin(), found.end(), [](const Neighbour& a, const Neighbour& b) {
      return a.cosine != b.cosine ? a.cosine > b.cosine : a.slot < b.slot;
    });
    if (std::ssize(found) > k) found.resize(static_cast<size_t>(k));
    return found;
  }

 private:
  CosineSpace space_;
  hnswlib::HierarchicalNSW<float> graph_;
  const int32_t breadth_;
};

}  // namespace

Result<std::shared_ptr<const HnswIndex>> HnswIndex::build(MatrixView<const float> unit, const Options& options,
                                                          const std::atomic<bool>& stop) {
  const double bytes = static_cast<double>(unit.rows) * static_cast<double>(unit.cols * 4 + options.links * 10 + 64);
  STREAMVEC_RETURN_IF_ERROR(
      check_memory("the index of " + std::to_string(unit.rows) + " words", bytes, "a larger --exact-max"));
  try {  // hnswlib throws
    auto graph = std::make_shared<Graph>(unit.rows, unit.cols, options);
    std::atomic<int64_t> next{0};
    const auto work = [&] {
      for (int64_t row = next++; row < unit.rows && !stop; row = next++)
        graph->add(unit.row(row), static_cast<Slot>(row));
    };
    Threads others;
    (void)others.start(options.threads - 1, [&](int64_t) { work(); });  // fewer are slower
    work();
    others.join();
    if (stop) return error(Code::kCancelled, "the index was not finished");
    return std::shared_ptr<const HnswIndex>(std::move(graph));
  } catch (const std::bad_alloc&) {
    return error(Code::kResourceExhausted, "there is no memory for the index of ", unit.rows, " words");
  } catch (const std::runtime_error& failure) {
    return error(Code::kInternal, "hnswlib: ", failure.what());
  }
}

}  // namespace streamvec
