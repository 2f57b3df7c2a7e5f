#include "streamvec/serve/model_board.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace streamvec {
namespace {

constexpr int kNice = 10;

}  // namespace

ModelBoard::ModelBoard(Options options)
    : options_(std::move(options)), mapper_(options_.map), thread_([this] {
        ::pthread_setname_np(::pthread_self(), "models");
        // Questions come first.
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
        run();
      }) {}

ModelBoard::~ModelBoard() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = leave_index_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ModelBoard::publish(std::shared_ptr<const Snapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  next_ = std::move(snapshot);
  leave_index_ = true;
  changed_.notify_all();
}

void ModelBoard::await_served() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (next_ == nullptr && !busy_) || stopping_; });
}

std::shared_ptr<const ServedModel> ModelBoard::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::shared_ptr<const MapFrame> ModelBoard::map() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

std::string ModelBoard::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_.empty() ? outer_trouble_ : trouble_;
}

void ModelBoard::set_trouble(const std::string& text) {
  const std::lock_guard lock(mutex_);
  outer_trouble_ = text;
}

void ModelBoard::run() {
  while (true) {
    std::shared_ptr<const Snapshot> snapshot;
    {
      std::unique_lock lock(mutex_);
      busy_ = false;
      changed_.notify_all();
      changed_.wait(lock, [&] { return stopping_ || next_ != nullptr; });
      if (stopping_) return;
      snapshot = std::move(next_);
      next_ = nullptr;
      leave_index_ = false;
      busy_ = true;
    }
    serve(std::move(snapshot));
  }
}

void ModelBoard::serve(std::shared_ptr<const Snapshot> snapshot) {
  const std::shared_ptr<const ServedModel> last = current();
  auto made = ServedModel::make(std::move(snapshot), last == nullptr ? 1 : last->number() + 1);
  {
    const std::lock_guard lock(mutex_);
    trouble_ = made.ok() ? "" : made.status().message();
    if (!made.ok()) return;
    current_ = *made;
  }
  if (options_.on_model) options_.on_model(**made);
  if (auto drawn = mapper_.update(**made); drawn.ok()) {
    {
      const std::lock_guard lock(mutex_);
      map_ = *drawn;
    }
    if (options_.on_map) options_.on_map(**drawn);
  }
  if ((*made)->vocabulary().size() > options_.exact_words_max) build_index(*made);
}

void ModelBoard::build_index(const std::shared_ptr<const ServedModel>& model) {
  auto built = HnswIndex::build(model->search_rows(), options_.index, leave_index_);
  const std::lock_guard lock(mutex_);
  if (built.ok())
    current_ = model->with_index(std::move(*built));
  else if (built.status().code() != Code::kCancelled)
    trouble_ = built.status().message();
}

}  // namespace streamvec
