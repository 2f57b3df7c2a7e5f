#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "streamvec/cuda/rbsg_batch.h"
#include "streamvec/cuda/rbsg_trainer.h"

namespace streamvec::cuda {
namespace {

constexpr size_t kSlots = 3;  // batches: one in work, one queued, one laid out

class CardRbsg final : public RbsgTrainer {
 public:
  explicit CardRbsg(const RbsgShape& shape) : steps_(shape) {}

  ~CardRbsg() override {
    if (!launcher_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    launcher_.join();
    (void)steps_.wait();
  }

  Status begin() {
    STREAMVEC_RETURN_IF_ERROR(steps_.begin());
    for (RbsgPlanned& slot : slots_) STREAMVEC_RETURN_IF_ERROR(slot.allocate());
    launcher_ = std::thread([this] { queue_batches(); });
    return {};
  }

  Status put(const EncoderViews (&values)[2], const EncoderViews (&means)[2], const EncoderViews (&variances)[2],
             int64_t steps) override {
    STREAMVEC_RETURN_IF_ERROR(finish());
    steps_.set_steps(steps);
    STREAMVEC_RETURN_IF_ERROR(steps_.put(values, RbsgSteps::kValues));
    STREAMVEC_RETURN_IF_ERROR(steps_.put(means, RbsgSteps::kMeans));
    return steps_.put(variances, RbsgSteps::kVariances);
  }

  Status get(const EncoderViews (&values)[2], const EncoderViews (&means)[2],
             const EncoderViews (&variances)[2]) override {
    STREAMVEC_RETURN_IF_ERROR(finish());
    STREAMVEC_RETURN_IF_ERROR(steps_.get(values, RbsgSteps::kValues));
    STREAMVEC_RETURN_IF_ERROR(steps_.get(means, RbsgSteps::kMeans));
    return steps_.get(variances, RbsgSteps::kVariances);
  }

  Status train(const RbsgWork& work) override {
    RbsgPlanned& slot = slots_[turn_];
    turn_ = (turn_ + 1) % kSlots;
    STREAMVEC_RETURN_IF_ERROR(empty_out(slot));
    STREAMVEC_RETURN_IF_ERROR(slot.stage(work));
    {
      const std::lock_guard lock(mutex_);
      slot.in_work = true;
      waiting_.push_back(&slot);
    }
    changed_.notify_all();
    return {};
  }

  Result<RbsgTotals> totals(bool all) override {
    if (all) STREAMVEC_RETURN_IF_ERROR(finish());
    return std::exchange(totals_, RbsgTotals());
  }

 private:
  // Some 80 calls a batch: a thread of its own makes them, so that the next batch is planned meanwhile.
  void queue_batches() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      RbsgPlanned& slot = *waiting_.front();
      lock.unlock();
      const Status queued = steps_.queue(slot);
      lock.lock();
      if (status_.ok()) status_ = queued;
      waiting_.erase(waiting_.begin());
      changed_.notify_all();
    }
  }

  Status empty_out(RbsgPlanned& slot) {
    if (!slot.in_work) return {};
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return std::find(waiting_.begin(), waiting_.end(), &slot) == waiting_.end(); });
      STREAMVEC_RETURN_IF_ERROR(status_);
    }
    STREAMVEC_RETURN_IF_ERROR(slot.wait());
    slot.in_work = false;
    const BatchResult& result = slot.result[0];
    totals_.batches_refused += result.refused;
    if (result.refused > 0) return {};
    totals_.pairs += slot.pairs_count;
    totals_.loss += result.loss;
    return {};
  }

  Status finish() {
    for (size_t i = 0; i < kSlots; ++i) STREAMVEC_RETURN_IF_ERROR(empty_out(slots_[(turn_ + i) % kSlots]));
    return steps_.wait();
  }

  RbsgPlanned slots_[kSlots];
  size_t turn_ = 0;
  RbsgTotals totals_;
  RbsgSteps steps_;  // of the launcher while something waits; what is in work uses the slots

  std::thread launcher_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<RbsgPlanned*> waiting_;  // to be queued; the first is being
  Status status_;
  bool closed_ = false;
};

}  // namespace

Result<std::unique_ptr<RbsgTrainer>> make_rbsg_trainer(const RbsgShape& shape) {
  STREAMVEC_RETURN_IF_ERROR(find_device().status());
  auto trainer = std::make_unique<CardRbsg>(shape);
  STREAMVEC_RETURN_IF_ERROR(trainer->begin());
  return std::unique_ptr<RbsgTrainer>(std::move(trainer));
}

}  // namespace streamvec::cuda
