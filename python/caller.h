// Training runs on threads of its own; Python runs on the one that called it, and only there. What training wants of
// Python (documents, a look at its progress) is asked for here and answered by that thread.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "python/binding.h"
#include "streamvec/source/document_source.h"
#include "streamvec/train/trainer.h"

namespace streamvec::python {

// One run's conversation. Functions of the caller's side need the GIL, and let go of it while they wait.
class Caller {
 public:
  // Python's callables, or None. `documents` is an iterable, or None when training reads sources of its own.
  struct Asked {
    py::object documents = py::none();
    bool read_again = false;  // training may ask for them anew
    py::object progress = py::none();
    py::object counting = py::none();
  };
  explicit Caller(Asked asked) : asked_(std::move(asked)) {}

  // Runs `work` on another thread and answers until it is done. Ctrl-C and an exception of the callables ask the work
  // to stop and are thrown once it has; else its error is. Ctrl-C that comes when all is trained changes nothing, and
  // an exception of documents that are read once is their end: those before it are trained on.
  TrainProgress run(const std::function<Result<TrainProgress>(const TrainHooks&)>& work);

  // For the end of Python: asks all work to stop and waits until it has, which saves it. What threads that still run
  // ask for afterwards is refused.
  static void stop_all();

  // The documents, as training reads them. Borrows this.
  std::unique_ptr<DocumentReader> reader();

 private:
  class Reader;
  class Running;

  void answer();
  void read_ahead();
  void rewind();
  void take_signals();
  void report();
  // Keeps the exception that is under way. Where it is not the documents' end the work is asked to stop.
  void give_up(bool is_end_of_documents);
  void stop();
  bool done();
  // Training's side.
  Result<int64_t> take(Deadline deadline, std::vector<Document>& out);
  Status ask_rewind();

  Asked asked_;
  py::object iterator_;  // where the documents are being read
  std::exception_ptr thrown_;
  bool interrupted_ = false;  // by Ctrl-C, which is what was thrown
  bool python_ends_ = false;
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // of all that follows
  std::condition_variable asked_for_, answered_;
  bool documents_wanted_ = false;  // reading has begun
  bool rewind_wanted_ = false;
  std::deque<Document> ready_;
  size_t ready_bytes_ = 0;
  bool ended_ = false;
  std::optional<TrainProgress> progress_;
  std::optional<std::pair<int64_t, double>> counting_;
  bool done_ = false;
};

}  // namespace streamvec::python
