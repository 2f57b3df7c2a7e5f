// What the sources of the Python module share: errors as exceptions, words as Python's strings.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec::python {

namespace py = pybind11;

// Throws what Python users expect for the code, with the message, in which options are written as Python writes them
// (min_count for --min-count; what is the command line's alone stays as it is), and the code's name as its attribute
// `code`. kNotFound becomes `not_found`: KeyError for words, FileNotFoundError for files.
// REQUIRES: !status.ok(), the GIL is held.
[[noreturn]] void raise(const Status& status, PyObject* not_found = PyExc_FileNotFoundError);

template <typename T>
T value_or_raise(Result<T> result, PyObject* not_found = PyExc_FileNotFoundError) {
  if (!result.ok()) raise(result.status(), not_found);
  return std::move(result).value();
}

inline void raise_unless_ok(const Status& status) {
  if (!status.ok()) raise(status);
}

// Python ends threads that come back to it after its end by unwinding their stack, which code like this does not
// survive. Such a thread stays here instead, until the process is gone.
[[noreturn]] inline void stay_for_ever() {
  while (true) ::pause();
}

// The GIL is free while it lives. pybind11's own aborts the process when Python ends meanwhile.
class OthersRun {
 public:
  OthersRun() : state_(PyEval_SaveThread()) {}
  ~OthersRun() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      stay_for_ever();
    }
  }
  OthersRun(const OthersRun&) = delete;
  OthersRun& operator=(const OthersRun&) = delete;

 private:
  PyThreadState* const state_;
};

// Words may be any bytes: what is no UTF-8 passes both ways as lone surrogates (PEP 383).
py::str str_of(std::string_view word);
py::list strs_of(const std::vector<std::string>& words);
std::string word_of(py::handle word);  // TypeError when it is no str
std::string key_of(py::handle word);   // the same; ValueError where str_of() would not give it back
std::string text_of(py::handle text);  // of bytes, too

// A path as Python has them: str, bytes or os.PathLike.
std::string path_of(py::handle path);

// Whether train() has a keyword of that name.
bool is_option(std::string_view name);

void bind_errors(py::module_& module);
void bind_vectors(py::module_& module);
void bind_training(py::module_& module);

}  // namespace streamvec::python
