#include "python/caller.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>

#include "streamvec/core/threads.h"

namespace streamvec::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAheadBytes = size_t{256} << 10;      // of documents that wait to be trained on
constexpr std::chrono::milliseconds kTurn{20};         // reading ahead looks up after this long
constexpr std::chrono::milliseconds kSignalEvery{50};  // how long Ctrl-C may go unnoticed

// Words in a row, as gensim's sentences are.
std::string joined(py::handle words) {
  std::string text;
  for (const py::handle word : words) text += (text.empty() ? "" : " ") + word_of(word);
  return text;
}

Document document_of(py::handle item) {
  if (py::isinstance<Document>(item)) return item.cast<Document>();
  if (PyUnicode_Check(item.ptr()) || PyBytes_Check(item.ptr())) return {text_of(item), ""};
  if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr())) return {joined(item), ""};
  throw py::type_error("a document is a str, a list of words, or a streamvec.Document, not " +
                       std::string(Py_TYPE(item.ptr())->tp_name));
}

// Each with its process: a fork has those of its parent here, too, but not their threads. Under the GIL.
std::map<Caller*, pid_t> all_running;
bool python_has_ended = false;

}  // namespace

class Caller::Running {
 public:
  explicit Running(Caller& caller) : caller_(caller) { all_running[&caller_] = ::getpid(); }
  ~Running() { all_running.erase(&caller_); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Caller& caller_;
};

class Caller::Reader : public DocumentReader {
 public:
  explicit Reader(Caller& caller) : caller_(caller) {}
  Result<int64_t> read(Deadline deadline, std::vector<Document>& out) override { return caller_.take(deadline, out); }
  Status rewind() override { return caller_.ask_rewind(); }

 private:
  Caller& caller_;
};

std::unique_ptr<DocumentReader> Caller::reader() {
  return std::make_unique<Reader>(*this);
}

// ---- training's side

Result<int64_t> Caller::take(Deadline deadline, std::vector<Document>& out) {
  std::unique_lock lock(mutex_);
  documents_wanted_ = true;
  asked_for_.notify_one();
  const auto answered = [&] { return !ready_.empty() || ended_; };
  const bool endless = deadline.when() == Deadline::Clock::time_point::max();  // which overflows in wait_until()
  // After a stop no more will come, and whoever asks is told so soon.
  if (endless) {
    answered_.wait(lock, [&] { return answered() || stop_; });
  } else {
    answered_.wait_until(lock, deadline.when(), [&] { return answered() || stop_; });
  }
  if (ready_.empty() && ended_) return 0;
  if (ready_.empty() && endless) return error(Code::kCancelled, "stopped while documents were read");
  if (ready_.empty()) return error(Code::kDeadlineExceeded, "no document came in time");
  const auto count = static_cast<int64_t>(ready_.size());
  for (Document& document : ready_) out.push_back(std::move(document));
  ready_.clear();
  ready_bytes_ = 0;
  asked_for_.notify_one();
  return count;
}

Status Caller::ask_rewind() {
  std::unique_lock lock(mutex_);
  rewind_wanted_ = true;
  asked_for_.notify_one();
  answered_.wait(lock, [&] { return !rewind_wanted_ || stop_; });
  if (rewind_wanted_) return error(Code::kCancelled, "stopped while documents were read");
  return {};
}

// ---- the caller's side

TrainProgress Caller::run(const std::function<Result<TrainProgress>(const TrainHooks&)>& work) {
  if (python_has_ended) raise(error(Code::kCancelled, "Python has ended; nothing is trained any more"));
  TrainHooks hooks;
  hooks.stop = &stop_;
  hooks.progress = [this](const TrainProgress& progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    asked_for_.notify_one();
  };
  hooks.counting = [this](int64_t tokens, double fraction) {
    const std::lock_guard lock(mutex_);
    counting_ = {tokens, fraction};
    asked_for_.notify_one();
  };
  Result<TrainProgress> result = error(Code::kInternal, "training did not begin");
  const Running running(*this);
  Threads thread;
  raise_unless_ok(thread.start(1, [&](int64_t) {
    try {
      result = work(hooks);
    } catch (const std::bad_alloc&) {
      result = error(Code::kResourceExhausted, "out of memory; try a smaller --dim or --vocab-max");
    } catch (const std::system_error& thrown) {
      result = error(Code::kResourceExhausted, "the system refuses (", thrown.what(), "); try fewer --threads");
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    asked_for_.notify_one();
  }));
  answer();
  {
    const OthersRun others_run;
    thread.join();
  }
  iterator_ = py::object();
  const bool finished = result.ok() && result->fraction >= 1;
  if (thrown_ && !(finished && interrupted_)) std::rethrow_exception(thrown_);
  if (python_ends_ && result.ok() && !finished) {  // the thread goes no further
    PyErr_SetNone(PyExc_SystemExit);
    throw py::error_already_set();
  }
  return value_or_raise(std::move(result));
}

void Caller::stop_all() {
  python_has_ended = true;
  const auto runs_here = [](const auto& each) { return each.second == ::getpid() && !each.first->done(); };
  for (const auto& each : all_running) {
    if (!runs_here(each)) continue;
    each.first->python_ends_ = true;
    each.first->stop();
  }
  while (std::any_of(all_running.begin(), all_running.end(), runs_here)) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // Ctrl-C does not wait for what does not end
    const OthersRun others_run;
    std::this_thread::sleep_for(kTurn);
  }
}

void Caller::answer() {
  while (true) {
    bool read = false, rewind_now = false, reading = false;
    {
      const OthersRun others_run;
      std::unique_lock lock(mutex_);
      const auto wants_documents = [&] { return documents_wanted_ && !ended_ && !stop_ && ready_bytes_ < kAheadBytes; };
      asked_for_.wait_for(lock, kSignalEvery, [&] {
        return done_ || (rewind_wanted_ && !stop_) || wants_documents() || progress_ || counting_;
      });
      if (done_) return;
      rewind_now = rewind_wanted_ && !stop_;
      read = !rewind_now && wants_documents();
    }
    try {
      take_signals();
      report();
      if (rewind_now) rewind();
      reading = read && !asked_.read_again;
      if (read) read_ahead();
    } catch (const abi::__forced_unwind&) {
      stay_for_ever();
    } catch (const py::error_already_set& thrown) {
      give_up(reading && thrown.matches(PyExc_Exception));  // Ctrl-C is none
    } catch (...) {
      give_up(reading);
    }
  }
}

void Caller::take_signals() {
  if (PyErr_CheckSignals() == 0) return;
  if (!thrown_) interrupted_ = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;  // a second one changes nothing
  throw py::error_already_set();
}

void Caller::report() {
  std::optional<TrainProgress> progress;
  std::optional<std::pair<int64_t, double>> counting;
  {
    const std::lock_guard lock(mutex_);
    progress = std::exchange(progress_, std::nullopt);
    counting = std::exchange(counting_, std::nullopt);
  }
  if (stop_) return;
  if (counting && !asked_.counting.is_none()) asked_.counting(counting->first, counting->second);
  if (progress && !asked_.progress.is_none()) asked_.progress(*progress);
}

void Caller::rewind() {
  iterator_ = py::iter(asked_.documents);
  const std::lock_guard lock(mutex_);
  ready_.clear();
  ready_bytes_ = 0;
  ended_ = false;
  rewind_wanted_ = false;
  answered_.notify_all();
}

void Caller::read_ahead() {
  if (!iterator_) iterator_ = py::iter(asked_.documents);
  const Clock::time_point until = Clock::now() + kTurn;
  do {
    PyObject* item = PyIter_Next(iterator_.ptr());
    if (item == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
    std::optional<Document> document;
    if (item != nullptr) document = document_of(py::reinterpret_steal<py::object>(item));
    const std::lock_guard lock(mutex_);
    ended_ = !document;
    if (document) {
      ready_bytes_ += document->text.size() + 1;
      ready_.push_back(std::move(*document));
    }
    answered_.notify_all();
    if (ended_ || ready_bytes_ >= kAheadBytes || rewind_wanted_ || done_) return;
  } while (Clock::now() < until);
}

void Caller::give_up(bool is_end_of_documents) {
  if (!thrown_) thrown_ = std::current_exception();
  if (!is_end_of_documents) return stop();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  answered_.notify_all();
}

void Caller::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  answered_.notify_all();
}

bool Caller::done() {
  const std::lock_guard lock(mutex_);
  return done_;
}

}  // namespace streamvec::python
