#include "streamvec/transport/nccl/nccl_collective.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "streamvec/cuda/device.h"
#include "streamvec/cuda/memory.cuh"
#include "streamvec/transport/nccl/nccl_library.h"

namespace streamvec {
namespace {

using cuda::Way;

Status check_library() {
  const std::string& missing = NcclLibrary::get().error;
  if (missing.empty()) return {};
  return error(Code::kUnavailable, "several GPUs need NCCL, which cannot be loaded (", missing,
               "); install it, name its folder in LD_LIBRARY_PATH, or use one GPU");
}

// The calling thread's card, for as long as this lives.
class OnCard {
 public:
  explicit OnCard(int card) {
    cudaGetDevice(&before_);
    status_ = cuda::status_of(cudaSetDevice(card), "cudaSetDevice");
  }
  ~OnCard() { cudaSetDevice(before_); }
  OnCard(const OnCard&) = delete;
  OnCard& operator=(const OnCard&) = delete;
  const Status& status() const { return status_; }

 private:
  int before_ = 0;
  Status status_;
};

class NcclCollective final : public Collective {
 public:
  NcclCollective(int rank, int ranks, int card) : rank_(rank), ranks_(ranks), card_(card) {}

  ~NcclCollective() override {
    const OnCard on(card_);
    leave();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  Status join(const ncclUniqueId& group, Deadline deadline) {
    const OnCard on(card_);
    STREAMVEC_RETURN_IF_ERROR(on.status());
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // every wait is ours, and ends at a deadline
    return keep(wait(nccl_.init_rank(&group_, ranks_, group, rank_, &config), "joining", deadline));
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Status all_reduce_mean(std::span<float> values, Deadline deadline) override {
    const OnCard on(card_);
    STREAMVEC_RETURN_IF_ERROR(on.status());
    STREAMVEC_RETURN_IF_ERROR(broken_);
    return keep(reduce(values, deadline));
  }

  Status all_gather(std::string_view mine, std::vector<std::string>& all, Deadline deadline) override {
    const OnCard on(card_);
    STREAMVEC_RETURN_IF_ERROR(on.status());
    STREAMVEC_RETURN_IF_ERROR(broken_);
    return keep(gather(mine, all, deadline));
  }

  Status broadcast(std::string& bytes, int root, Deadline deadline) override {
    const OnCard on(card_);
    STREAMVEC_RETURN_IF_ERROR(on.status());
    STREAMVEC_RETURN_IF_ERROR(broken_);
    return keep(hand_out(bytes, root, deadline));
  }

 private:
  Status reduce(std::span<float> values, Deadline deadline) {
    std::vector<uint64_t> sizes;
    STREAMVEC_RETURN_IF_ERROR(gather_sizes(values.size(), sizes, deadline));
    for (int other = 0; other < ranks_; ++other)
      if (sizes[static_cast<size_t>(other)] != values.size())
        return error(Code::kInvalidArgument, "rank ", other, " brings ", sizes[static_cast<size_t>(other)],
                     " values, this one ", values.size());
    if (values.empty()) return {};
    const bool there = on_card(values.data());
    STREAMVEC_RETURN_IF_ERROR(there ? Status() : bring(values.data(), values.size_bytes()));
    float* at = there ? values.data() : reinterpret_cast<float*>(bytes_.data());
    STREAMVEC_RETURN_IF_ERROR(
        wait(nccl_.all_reduce(at, at, values.size(), ncclFloat, ncclAvg, group_, stream_), "a mean", deadline));
    return there ? Status() : fetch(bytes_.data(), values.data(), values.size_bytes());
  }

  // Each rank's bytes have as much room as the most.
  Status gather(std::string_view mine, std::vector<std::string>& all, Deadline deadline) {
    std::vector<uint64_t> sizes;
    STREAMVEC_RETURN_IF_ERROR(gather_sizes(mine.size(), sizes, deadline));
    const size_t most = *std::max_element(sizes.begin(), sizes.end());
    std::string together(most * static_cast<size_t>(ranks_), '\0');
    if (most > 0) STREAMVEC_RETURN_IF_ERROR(gather_equal(mine, most, together.data(), deadline));
    all.clear();
    for (size_t other = 0; other < sizes.size(); ++other) all.push_back(together.substr(other * most, sizes[other]));
    return {};
  }

  Status hand_out(std::string& bytes, int root, Deadline deadline) {
    STREAMVEC_CHECK(root >= 0 && root < ranks_);
    std::vector<uint64_t> sizes;
    STREAMVEC_RETURN_IF_ERROR(gather_sizes(bytes.size(), sizes, deadline));
    bytes.resize(sizes[static_cast<size_t>(root)]);
    if (bytes.empty()) return {};
    STREAMVEC_RETURN_IF_ERROR(bring(bytes.data(), bytes.size()));
    STREAMVEC_RETURN_IF_ERROR(
        wait(nccl_.broadcast(bytes_.data(), bytes_.data(), bytes.size(), ncclChar, root, group_, stream_),
             "a broadcast", deadline));
    return fetch(bytes_.data(), bytes.data(), bytes.size());
  }

  Status gather_sizes(uint64_t mine, std::vector<uint64_t>& sizes, Deadline deadline) {
    sizes.resize(static_cast<size_t>(ranks_));
    const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
    return gather_equal(bytes, sizeof mine, reinterpret_cast<char*>(sizes.data()), deadline);
  }

  // `size` bytes of each rank, of which this one has `mine` to tell. REQUIRES: mine.size() <= size.
  Status gather_equal(std::string_view mine, size_t size, char* all, Deadline deadline) {
    const size_t whole = size * static_cast<size_t>(ranks_);
    STREAMVEC_RETURN_IF_ERROR(gathered_.allocate(whole));
    STREAMVEC_RETURN_IF_ERROR(bytes_.allocate(size));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(bytes_.data(), 0, size, stream_));
    if (!mine.empty()) STREAMVEC_RETURN_IF_ERROR(bring(mine.data(), mine.size()));
    STREAMVEC_RETURN_IF_ERROR(
        wait(nccl_.all_gather(bytes_.data(), gathered_.data(), size, ncclChar, group_, stream_), "a gather", deadline));
    return fetch(gathered_.data(), all, whole);
  }

  static bool on_card(const void* at) {
    cudaPointerAttributes attributes{};
    const bool known = cudaPointerGetAttributes(&attributes, at) == cudaSuccess;
    if (!known) (void)cudaGetLastError();
    return known && attributes.type == cudaMemoryTypeDevice;
  }

  Status bring(const void* from, size_t size) {
    STREAMVEC_RETURN_IF_ERROR(bytes_.allocate(size));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cuda::copy_later(Way::kToCard, bytes_.data(), from, size, stream_));
    return {};
  }
  // What was done before is done: wait() has waited.
  Status fetch(const void* from, void* to, size_t size) {
    STREAMVEC_CUDA_RETURN_IF_ERROR(cuda::copy_later(Way::kFromCard, to, from, size, stream_));
    STREAMVEC_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
    return {};
  }

  // Until what was begun, and all that the stream has, is done.
  Status wait(ncclResult_t begun, const char* what, Deadline deadline) {
    while (true) {
      ncclResult_t state = begun;
      if (begun == ncclSuccess || begun == ncclInProgress)
        if (const ncclResult_t asked = nccl_.get_async_error(group_, &state); asked != ncclSuccess) state = asked;
      if (state != ncclSuccess && state != ncclInProgress) return failed(state, what);
      if (state == ncclSuccess) {
        const cudaError_t done = cudaStreamQuery(stream_);
        if (done == cudaSuccess) return {};
        if (done != cudaErrorNotReady) return cuda::status_of(done, what);
      }
      if (deadline.passed())
        return error(Code::kDeadlineExceeded, "rank ", rank_, " of ", ranks_, " waited too long for ", what,
                     "; has another rank stopped?");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  Status failed(ncclResult_t state, const char* what) const {
    const bool ours = state == ncclInvalidArgument || state == ncclInvalidUsage;
    return error(ours ? Code::kInvalidArgument : Code::kUnavailable, "NCCL failed (", what, ", rank ", rank_, " of ",
                 ranks_, ", card ", card_, "): ", nccl_.error_string(state), "; NCCL_DEBUG=WARN tells more");
  }

  // After an error nothing is known of the others.
  Status keep(Status status) {
    if (!status.ok()) {
      broken_ = status;
      leave();
    }
    return status;
  }

  void leave() {
    if (group_ == nullptr) return;
    if (broken_.ok() && wait(nccl_.finalize(group_), "the end", Deadline::after(std::chrono::seconds(5))).ok())
      nccl_.destroy(group_);
    else
      nccl_.abort(group_);
    group_ = nullptr;
  }

  const NcclLibrary& nccl_ = NcclLibrary::get();
  const int rank_, ranks_, card_;
  cudaStream_t stream_ = nullptr;
  ncclComm_t group_ = nullptr;
  cuda::CardBuffer<char> bytes_, gathered_;
  Status broken_;
};

}  // namespace

Result<int> count_cards() {
  STREAMVEC_RETURN_IF_ERROR(cuda::find_device().status());
  int count = 0;
  STREAMVEC_CUDA_RETURN_IF_ERROR(cudaGetDeviceCount(&count));
  return count;
}

Result<std::string> make_nccl_group() {
  STREAMVEC_RETURN_IF_ERROR(check_library());
  ncclUniqueId id;
  if (const ncclResult_t made = NcclLibrary::get().get_unique_id(&id); made != ncclSuccess)
    return error(Code::kUnavailable, "NCCL cannot begin a group: ", NcclLibrary::get().error_string(made));
  return std::string(id.internal, sizeof id.internal);
}

Result<std::unique_ptr<Collective>> join_nccl_group(const std::string& group, int rank, int ranks, int card,
                                                    Deadline deadline) {
  STREAMVEC_CHECK(rank >= 0 && rank < ranks);
  STREAMVEC_RETURN_IF_ERROR(check_library());
  ncclUniqueId id;
  if (group.size() != sizeof id.internal)
    return error(Code::kInvalidArgument, "the name of an NCCL group has ", sizeof id.internal, " bytes, not ",
                 group.size());
  STREAMVEC_ASSIGN_OR_RETURN(const int cards, count_cards());
  if (card < 0 || card >= cards)
    return error(Code::kInvalidArgument, "there is no card ", card, ": this process sees ", cards,
                 "; CUDA_VISIBLE_DEVICES says which");
  std::memcpy(id.internal, group.data(), sizeof id.internal);
  auto joined = std::make_unique<NcclCollective>(rank, ranks, card);
  STREAMVEC_RETURN_IF_ERROR(joined->join(id, deadline));
  return std::unique_ptr<Collective>(std::move(joined));
}

}  // namespace streamvec
