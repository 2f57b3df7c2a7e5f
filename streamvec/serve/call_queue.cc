#include "streamvec/serve/call_queue.h"

#include <pthread.h>

namespace streamvec {

CallQueue::CallQueue(const Options& options, std::function<std::shared_ptr<const ServedModel>()> current)
    : options_(options), current_(std::move(current)) {
  for (int32_t i = 0; i < options_.threads; ++i)
    threads_.emplace_back([this] {
      ::pthread_setname_np(::pthread_self(), options_.name.c_str());
      run();
    });
}

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool CallQueue::push(const std::string& client, std::unique_ptr<Call> call) {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= options_.waiting_max || stopping_) return false;
  auto known = line_of_.find(client);
  if (known == line_of_.end()) {
    lines_.push_back({client, {}});
    known = line_of_.emplace(client, std::prev(lines_.end())).first;
  }
  std::deque<std::unique_ptr<Call>>& calls = known->second->calls;
  if (static_cast<int64_t>(calls.size()) >= options_.client_waiting_max) return false;
  calls.push_back(std::move(call));
  ++waiting_;
  changed_.notify_one();
  return true;
}

int64_t CallQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

// One call of each client in turn, until there are enough. REQUIRES: the lock is held.
std::vector<std::unique_ptr<Call>> CallQueue::take() {
  std::vector<std::unique_ptr<Call>> taken;
  while (waiting_ > 0 && static_cast<int64_t>(taken.size()) < options_.together_max) {
    Line& line = lines_.front();
    taken.push_back(std::move(line.calls.front()));
    line.calls.pop_front();
    --waiting_;
    if (line.calls.empty()) {
      line_of_.erase(line.client);
      lines_.pop_front();
    } else {
      lines_.splice(lines_.end(), lines_, lines_.begin());
    }
  }
  return taken;
}

void CallQueue::run() {
  while (true) {
    std::vector<std::unique_ptr<Call>> calls;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || waiting_ > 0; });
      if (stopping_) return;
      calls = take();
    }
    const std::shared_ptr<const ServedModel> model = current_();
    std::vector<SearchRequest> sought;
    std::vector<Call*> seekers;
    for (const auto& call : calls)
      if (auto request = call->begin(model)) {
        sought.push_back(std::move(*request));
        seekers.push_back(call.get());
      }
    if (sought.empty()) continue;
    const auto found = model->search(sought);
    for (size_t i = 0; i < seekers.size(); ++i) seekers[i]->finish(model, found[i]);
  }
}

}  // namespace streamvec
