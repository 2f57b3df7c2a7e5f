#include "python/caller.h"

#include <chrono>
#include <thread>

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

}  // namespace

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

bool Caller::replayable() const {
  return PyIter_Check(asked_.documents.ptr()) == 0;
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
  std::thread thread([&] {
    try {
      result = work(hooks);
    } catch (const std::bad_alloc&) {
      result = error(Code::kResourceExhausted, "out of memory; try a smaller --dim or --vocab-max");
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    asked_for_.notify_one();
  });
  answer();
  {
    const py::gil_scoped_release others_run;
    thread.join();
  }
  iterator_ = py::object();
  if (thrown_) std::rethrow_exception(thrown_);
  return value_or_raise(std::move(result));
}

void Caller::answer() {
  while (true) {
    bool read = false, rewind_now = false;
    {
      const py::gil_scoped_release others_run;
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
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      report();
      if (rewind_now) rewind();
      if (read) read_ahead();
    } catch (...) {
      give_up();
    }
  }
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

void Caller::give_up() {
  if (!thrown_) thrown_ = std::current_exception();
  const std::lock_guard lock(mutex_);
  stop_ = true;
  answered_.notify_all();
}

}  // namespace streamvec::python
