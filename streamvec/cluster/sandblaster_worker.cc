#include "streamvec/cluster/sandblaster_worker.h"

#include <algorithm>

#include "streamvec/core/memory.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/sync/view.h"

namespace streamvec {

struct SandblasterWorker::Thread {
  std::unique_ptr<PortionWorker> portion;
  std::vector<RowKey> rows;
  RowBuffer values, gradient;
};

Result<std::unique_ptr<SandblasterWorker>> SandblasterWorker::make(const Options& options,
                                                                   const PortionedObjective& objective,
                                                                   SandblasterPost post) {
  std::unique_ptr<SandblasterWorker> worker(new SandblasterWorker(options, objective, std::move(post)));
  STREAMVEC_ASSIGN_OR_RETURN(worker->rows_, Matrix::make(int64_t{options.row_end}, options.dim));
  STREAMVEC_ASSIGN_OR_RETURN(worker->fetched_in_,
                             make_values<uint64_t>(int64_t{options.row_end}, "a worker's rows", "--vocab-max"));
  for (int32_t i = 0; i < std::max(options.threads, 1); ++i)
    worker->threads_.emplace_back([raw = worker.get()] { raw->run(); });
  return worker;
}

SandblasterWorker::~SandblasterWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SandblasterWorker::receive(NodeId /*from*/, const SandblasterMessage& message) {
  const std::lock_guard lock(mutex_);
  switch (message.kind) {
    case SandblasterKind::kView:
      epoch_ = message.epoch;
      owners_.assign(message.rows.begin(), message.rows.end());
      tasks_.clear();
      std::fill(fetched_in_.begin(), fetched_in_.end(), 0);
      break;
    case SandblasterKind::kPortion:
      if (message.epoch != epoch_) break;
      if (message.number != evaluation_) tasks_.clear();
      evaluation_ = message.number;
      tasks_.push_back({message.epoch, message.number, message.portion});
      break;
    case SandblasterKind::kRows:
      if (const auto asked = answers_.find(message.number); asked != answers_.end()) asked->second = message.values;
      break;
    case SandblasterKind::kTaken:
      if (const auto owed = owed_.find({message.number, message.portion}); owed != owed_.end()) --owed->second;
      break;
    default:
      return;
  }
  changed_.notify_all();
}

void SandblasterWorker::run() {
  Thread own;
  own.portion = objective_.make_worker();
  for (Task task; await_task(task);) work(task, own);
}

bool SandblasterWorker::await_task(Task& task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
  if (stopping_) return false;
  task = tasks_.front();
  tasks_.pop_front();
  return true;
}

void SandblasterWorker::work(const Task& task, Thread& own) {
  own.portion->begin(task.portion, own.rows);
  const auto count = static_cast<int64_t>(own.rows.size());
  const MatrixView<float> values = own.values.reserve_zeroed(count, options_.dim);
  const MatrixView<float> gradient = own.gradient.reserve_zeroed(count, options_.dim);
  if (!fetch(task, own)) return;
  const PortionValue value = own.portion->add_gradient(values, gradient);
  if (!bring(task, own)) return;
  post_(options_.coordinator, {.kind = SandblasterKind::kFinished,
                               .epoch = task.epoch,
                               .number = task.evaluation,
                               .portion = task.portion,
                               .doubles = {value.value, value.weight}});
}

// Rows that this node has of the same evaluation are not asked for again. False when the task is of no use any more.
bool SandblasterWorker::fetch(const Task& task, Thread& own) {
  std::unique_lock lock(mutex_);
  if (!is_current(task)) return false;
  std::map<NodeId, std::vector<RowKey>> missing;
  for (const RowKey row : own.rows)
    if (fetched_in_[row] != task.evaluation) missing[owner_of(row, owners_)].push_back(row);
  std::map<uint64_t, std::vector<RowKey>> asked;
  for (const auto& [owner, rows] : missing)
    for (size_t at = 0; at < rows.size(); at += at_once_) {
      SandblasterMessage ask{
          .kind = SandblasterKind::kFetch, .epoch = task.epoch, .number = ++questions_, .vector = kTrial};
      const std::span<const RowKey> part = std::span(rows).subspan(at, std::min(at_once_, rows.size() - at));
      ask.rows.assign(part.begin(), part.end());
      answers_[ask.number] = std::nullopt;
      post_(owner, ask);
      asked[ask.number] = std::move(ask.rows);
    }
  changed_.wait(lock, [&] {
    return !is_current(task) ||
           std::all_of(asked.begin(), asked.end(), [&](const auto& each) { return answers_[each.first].has_value(); });
  });
  const auto dim = static_cast<size_t>(options_.dim);
  bool whole = is_current(task);
  for (const auto& [question, rows] : asked) {
    const std::optional<std::vector<float>> answer = std::move(answers_[question]);
    answers_.erase(question);
    whole = whole && answer->size() == rows.size() * dim;
    for (size_t i = 0; whole && i < rows.size(); ++i) {
      std::copy_n(answer->data() + i * dim, dim, rows_.row(rows[i]));
      fetched_in_[rows[i]] = task.evaluation;
    }
  }
  for (size_t i = 0; whole && i < own.rows.size(); ++i)
    std::copy_n(rows_.row(own.rows[i]), dim, own.values.row(static_cast<int64_t>(i)));
  return whole;
}

// False when the task is of no use any more; otherwise all owners have their part.
bool SandblasterWorker::bring(const Task& task, Thread& own) {
  std::unique_lock lock(mutex_);
  if (!is_current(task)) return false;
  const std::pair key{task.evaluation, task.portion};
  int64_t& owed = owed_[key] = 0;
  const auto send = [&](NodeId owner, SandblasterMessage& part) {
    part.kind = SandblasterKind::kGradient;
    part.epoch = task.epoch;
    part.number = task.evaluation;
    part.portion = task.portion;
    post_(owner, part);
    part = {};
    ++owed;
  };
  std::map<NodeId, SandblasterMessage> parts;
  for (size_t i = 0; i < own.rows.size(); ++i) {
    const NodeId owner = owner_of(own.rows[i], owners_);
    SandblasterMessage& part = parts[owner];
    part.rows.push_back(own.rows[i]);
    const float* const row = own.gradient.row(static_cast<int64_t>(i));
    part.values.insert(part.values.end(), row, row + options_.dim);
    if (part.rows.size() == at_once_) send(owner, part);
  }
  for (auto& [owner, part] : parts)
    if (!part.rows.empty()) send(owner, part);
  changed_.wait(lock, [&] { return !is_current(task) || owed_[key] == 0; });
  owed_.erase(key);
  return is_current(task);
}

}  // namespace streamvec
