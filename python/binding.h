// What the sources of the Python module share: errors as exceptions, words as Python's strings.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <utility>

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

// Words may be any bytes: what is no UTF-8 passes both ways as lone surrogates (PEP 383).
py::str str_of(std::string_view word);
std::string word_of(py::handle word);  // TypeError when it is no str
std::string text_of(py::handle text);  // the same of bytes, too

// A path as Python has them: str, bytes or os.PathLike.
std::string path_of(py::handle path);

// Whether train() has a keyword of that name.
bool is_option(std::string_view name);

void bind_errors(py::module_& module);
void bind_vectors(py::module_& module);
void bind_training(py::module_& module);

}  // namespace streamvec::python
