// Status as exceptions, and strings both ways.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <map>
#include <optional>

#include "python/binding.h"

namespace streamvec::python {
namespace {

// Kept by the module, which is never unloaded.
PyObject* error_class = nullptr;
PyObject* resource_error_class = nullptr;

PyObject* class_of(Code code, PyObject* not_found) {
  switch (code) {
    case Code::kInvalidArgument:
      return PyExc_ValueError;
    case Code::kDeadlineExceeded:
      return PyExc_TimeoutError;
    case Code::kNotFound:
      return not_found;
    case Code::kAlreadyExists:
      return PyExc_FileExistsError;
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return PyExc_PermissionError;
    case Code::kResourceExhausted:
      return resource_error_class;
    case Code::kOutOfRange:
      return PyExc_IndexError;
    case Code::kUnimplemented:
      return PyExc_NotImplementedError;
    case Code::kUnavailable:
      return PyExc_ConnectionError;
    default:
      return error_class;
  }
}

const char* name_of(Code code) {
  static const std::map<Code, const char*> kNames = {{Code::kCancelled, "CANCELLED"},
                                                     {Code::kUnknown, "UNKNOWN"},
                                                     {Code::kInvalidArgument, "INVALID_ARGUMENT"},
                                                     {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
                                                     {Code::kNotFound, "NOT_FOUND"},
                                                     {Code::kAlreadyExists, "ALREADY_EXISTS"},
                                                     {Code::kPermissionDenied, "PERMISSION_DENIED"},
                                                     {Code::kResourceExhausted, "RESOURCE_EXHAUSTED"},
                                                     {Code::kFailedPrecondition, "FAILED_PRECONDITION"},
                                                     {Code::kAborted, "ABORTED"},
                                                     {Code::kOutOfRange, "OUT_OF_RANGE"},
                                                     {Code::kUnimplemented, "UNIMPLEMENTED"},
                                                     {Code::kInternal, "INTERNAL"},
                                                     {Code::kUnavailable, "UNAVAILABLE"},
                                                     {Code::kDataLoss, "DATA_LOSS"},
                                                     {Code::kUnauthenticated, "UNAUTHENTICATED"}};
  const auto found = kNames.find(code);
  return found == kNames.end() ? "UNKNOWN" : found->second;
}

// The keyword of an option (without its dashes); "" when only the command line has it.
std::string keyword_of(std::string_view option) {
  static const std::map<std::string_view, const char*> kOtherNames = {{"char-dim", "character_dim"},
                                                                      {"memory", "memory_mb"},
                                                                      {"checkpoint-every", "checkpoint_every_s"},
                                                                      {"evaluate-every", "evaluate_every_s"},
                                                                      {"language", "languages"},
                                                                      {"keep-case", "fold_case=False"},
                                                                      {"no-nfkc", "nfkc=False"},
                                                                      {"no-drift", "drift=False"},
                                                                      {"out", "out"},
                                                                      {"format", "format"}};
  if (const auto found = kOtherNames.find(option); found != kOtherNames.end()) return found->second;
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  return is_option(name) ? name : "";
}

// Where a message begins to say what to type in a shell; its size when it does not.
size_t command_begin(std::string_view message) {
  return std::min({message.find(" with: "), message.find(" try: "), message.size()});
}

// "--min-count 1" as "min_count 1": where two dashes begin a word, up to its end. Commands stay as they are.
std::string with_python_names(std::string_view message) {
  constexpr std::string_view kDashes = "--", kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-";
  const size_t end = command_begin(message);
  std::string text;
  size_t at = 0;
  while (at < end) {
    const bool begins_word = at == 0 || message[at - 1] == ' ' || message[at - 1] == '(';
    if (begins_word && message.substr(at).starts_with(kDashes)) {
      const size_t name = at + kDashes.size(), after = std::min(message.find_first_not_of(kOfNames, name), end);
      const std::string keyword = keyword_of(message.substr(name, after - name));
      text += keyword.empty() ? message.substr(at, after - at) : keyword;
      at = after;
    } else {
      text += message[at++];
    }
  }
  return text.append(message.substr(end));
}

// As str_of() reads them; nothing where a surrogate stands for no byte.
std::optional<std::string> bytes_of(py::handle word) {
  if (!PyUnicode_Check(word.ptr()))
    throw py::type_error("a word is a str, not " + std::string(Py_TYPE(word.ptr())->tp_name));
  Py_ssize_t size = 0;
  if (const char* bytes = PyUnicode_AsUTF8AndSize(word.ptr(), &size))
    return std::string(bytes, static_cast<size_t>(size));
  PyErr_Clear();  // lone surrogates
  if (PyObject* bytes = PyUnicode_AsEncodedString(word.ptr(), "utf-8", "surrogateescape"))
    return py::reinterpret_steal<py::bytes>(bytes);
  PyErr_Clear();
  return std::nullopt;
}

}  // namespace

void raise(const Status& status, PyObject* not_found) {
  const py::object made = py::reinterpret_borrow<py::object>(class_of(status.code(), not_found))(
      str_of(with_python_names(status.message())));
  made.attr("code") = name_of(status.code());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw py::error_already_set();
}

py::str str_of(std::string_view word) {
  PyObject* made = PyUnicode_DecodeUTF8(word.data(), static_cast<Py_ssize_t>(word.size()), "surrogateescape");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

py::list strs_of(const std::vector<std::string>& words) {
  py::list strs;
  for (const std::string& word : words) strs.append(str_of(word));
  return strs;
}

std::string key_of(py::handle word) {
  std::optional<std::string> bytes = bytes_of(word);
  if (!bytes)
    raise(error(Code::kInvalidArgument, py::repr(word).cast<std::string>(),
                " holds half of a surrogate pair, which no text has"));
  return *std::move(bytes);
}

std::string word_of(py::handle word) {
  if (std::optional<std::string> bytes = bytes_of(word)) return *std::move(bytes);
  PyObject* bytes = PyUnicode_AsEncodedString(word.ptr(), "utf-8", "surrogatepass");
  if (bytes == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes);
}

std::string text_of(py::handle text) {
  if (PyBytes_Check(text.ptr())) return py::reinterpret_borrow<py::bytes>(text);
  if (!PyUnicode_Check(text.ptr()))
    throw py::type_error("a text is a str or bytes, not " + std::string(Py_TYPE(text.ptr())->tp_name));
  return word_of(text);
}

std::string path_of(py::handle path) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(encoded);
}

void bind_errors(py::module_& module) {
  error_class = PyErr_NewExceptionWithDoc(
      "streamvec.Error",
      "What went wrong has no closer Python exception: another model in the directory, a damaged checkpoint.\n\n"
      "Every exception of this module but TypeError has the name of its code (\"FAILED_PRECONDITION\", "
      "\"DATA_LOSS\", ...) as `code`.",
      PyExc_RuntimeError, nullptr);
  const py::tuple bases =
      py::make_tuple(py::handle(error_class), py::handle(PyExc_MemoryError), py::handle(PyExc_OSError));
  resource_error_class = PyErr_NewExceptionWithDoc(
      "streamvec.ResourceError", "No memory, no more threads, or no room on the disk.", bases.ptr(), nullptr);
  if (error_class == nullptr || resource_error_class == nullptr) throw py::error_already_set();
  module.attr("Error") = py::handle(error_class);
  module.attr("ResourceError") = py::handle(resource_error_class);
}

}  // namespace streamvec::python
