// WordVectors for Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <numeric>

#include "python/binding.h"
#include "streamvec/api/word_vectors.h"

namespace streamvec::python {
namespace {

// The vectors with what Python has made of them so far.
struct Vectors {
  WordVectors of;
  std::vector<std::string> notes;
  py::object index_to_key = {};  // made when first asked for
  py::object key_to_index = {};
};

using FloatRows = py::array_t<float, py::array::c_style | py::array::forcecast>;

// A read-only view of memory that `owner` keeps alive.
template <typename T>
py::array view(const py::object& owner, const T* data, std::vector<py::ssize_t> shape,
               std::vector<py::ssize_t> strides) {
  py::array array(py::dtype::of<T>(), std::move(shape), std::move(strides), data, owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::array row_of(const py::object& self, const WordVectors& vectors, Slot slot) {
  return view(self, vectors.vectors().row(slot), {vectors.vector_size()}, {sizeof(float)});
}

// An array of its own, as unchangeable as the views.
py::array array_of(std::vector<float> values) {
  auto kept = std::make_unique<std::vector<float>>(std::move(values));
  const float* data = kept->data();
  const auto size = static_cast<py::ssize_t>(kept->size());
  const py::capsule owner(kept.release(), [](void* vector) { delete static_cast<std::vector<float>*>(vector); });
  return view(owner, data, {size}, {sizeof(float)});
}

std::vector<float> vector_or_raise(const WordVectors& vectors, const std::string& word) {
  Result<std::vector<float>> made = Status();
  {
    const OthersRun others_run;
    made = vectors.get_vector(word);
  }
  return value_or_raise(std::move(made), PyExc_KeyError);
}

py::array get_vector(const py::object& self, const py::str& word, bool norm) {
  const WordVectors& vectors = self.cast<const Vectors&>().of;
  const std::string bytes = word_of(word);
  const Slot slot = vectors.find(bytes);
  if (slot != kNoSlot && !norm) return row_of(self, vectors, slot);
  std::vector<float> values = vector_or_raise(vectors, bytes);
  if (norm) {
    const double length = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    for (float& value : values) value = static_cast<float>(length > 0 ? value / length : 0);
  }
  return array_of(std::move(values));
}

py::array get_vectors(const py::object& self, const py::sequence& words) {
  const auto& vectors = self.cast<const Vectors&>().of;
  FloatRows rows({static_cast<py::ssize_t>(words.size()), static_cast<py::ssize_t>(vectors.vector_size())});
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<float> values = vector_or_raise(vectors, word_of(words[i]));
    std::copy(values.begin(), values.end(), rows.mutable_data(static_cast<py::ssize_t>(i), 0));
  }
  return rows;
}

Slot get_index(const Vectors& self, const py::str& word) {
  const Slot slot = self.of.find(word_of(word));
  if (slot == kNoSlot)
    raise(error(Code::kNotFound, "\"", word_of(word), "\" is not in the model's vocabulary"), PyExc_KeyError);
  return slot;
}

py::object index_to_key(Vectors& self) {
  if (!self.index_to_key) {
    py::tuple words(static_cast<size_t>(self.of.size()));
    for (Slot slot = 0; slot < self.of.size(); ++slot) words[static_cast<size_t>(slot)] = str_of(self.of.word(slot));
    self.index_to_key = words;
  }
  return self.index_to_key;
}

py::object key_to_index(Vectors& self) {
  if (!self.key_to_index) {
    py::dict slots;
    int64_t slot = 0;
    for (const py::handle word : index_to_key(self)) slots[word] = slot++;
    self.key_to_index = py::module_::import("types").attr("MappingProxyType")(slots);
  }
  return self.key_to_index;
}

WordOrVector term_of(py::handle term) {
  if (PyUnicode_Check(term.ptr())) return word_of(term);
  const auto values = FloatRows::ensure(term);
  if (!values || values.ndim() != 1) {
    PyErr_Clear();
    throw py::type_error("most_similar() takes words and vectors of one dimension, not " +
                         std::string(Py_TYPE(term.ptr())->tp_name));
  }
  return std::vector<float>(values.data(), values.data() + values.size());
}

bool is_vector(const py::object& given) {
  if (!py::isinstance<py::array>(given)) return false;
  const auto array = py::reinterpret_borrow<py::array>(given);
  return array.ndim() == 1 && (array.size() == 0 || !PyUnicode_Check(py::object(given[py::int_(0)]).ptr()));
}

// A word or a vector alone, or several of them.
std::vector<WordOrVector> terms_of(const py::object& given) {
  if (given.is_none()) return {};
  if (PyUnicode_Check(given.ptr()) || is_vector(given)) return {term_of(given)};
  std::vector<WordOrVector> terms;
  for (const py::handle term : given) terms.push_back(term_of(term));
  return terms;
}

py::list most_similar(const Vectors& self, const py::object& positive, const py::object& negative, int32_t topn) {
  const std::vector<WordOrVector> near = terms_of(positive), far = terms_of(negative);
  Result<std::vector<ScoredWord>> found = Status();
  {
    const OthersRun others_run;
    found = self.of.most_similar(near, far, topn);
  }
  py::list words;
  for (const ScoredWord& scored : value_or_raise(std::move(found), PyExc_KeyError))
    words.append(py::make_tuple(str_of(scored.word), static_cast<double>(scored.score)));
  return words;
}

double similarity(const Vectors& self, const py::str& a, const py::str& b) {
  return value_or_raise(self.of.similarity(word_of(a), word_of(b)), PyExc_KeyError);
}

py::str doesnt_match(const Vectors& self, const py::iterable& words) {
  if (PyUnicode_Check(words.ptr())) throw py::type_error("doesnt_match() takes several words, not one str");
  std::vector<std::string> each;
  for (const py::handle word : words) each.push_back(word_of(word));
  return str_of(value_or_raise(self.of.doesnt_match(each), PyExc_KeyError));
}

Vectors load(const py::object& directory) {
  const std::string path = path_of(directory);
  std::vector<std::string> notes;
  Result<WordVectors> loaded = Status();
  {
    const OthersRun others_run;
    loaded = WordVectors::load(path, &notes);
  }
  return {value_or_raise(std::move(loaded)), std::move(notes)};
}

Vectors import_vectors(const py::object& file) {
  const std::string path = path_of(file);
  Result<WordVectors> imported = Status();
  {
    const OthersRun others_run;
    imported = WordVectors::import_vectors(path);
  }
  return {value_or_raise(std::move(imported)), {}};
}

// 3, 3.0 or what numpy has for them.
int64_t count_of(const std::string& word, py::handle count) {
  constexpr double kTooLarge = 9223372036854775808.0;  // 2^63
  if (PyLong_Check(count.ptr()) != 0) {
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(count.ptr(), &overflow);
    if (overflow == 0) return whole;
  }
  double value = PyFloat_AsDouble(count.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) {
    const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (!too_large)
      throw py::type_error("a count is a whole number, not " + std::string(Py_TYPE(count.ptr())->tp_name));
    value = kTooLarge;
  }
  if (std::trunc(value) != value || !(std::abs(value) < kTooLarge))
    raise(error(Code::kInvalidArgument, "the count of \"", word, "\" is ", value,
                "; counts are whole numbers below 2^63"));
  return PyIndex_Check(count.ptr()) != 0 ? count.cast<int64_t>() : static_cast<int64_t>(value);
}

std::vector<int64_t> counts_of(const std::vector<std::string>& words, const py::object& counts) {
  std::vector<int64_t> numbers;
  if (counts.is_none()) return numbers;
  for (const py::handle count : counts)
    numbers.push_back(count_of(numbers.size() < words.size() ? words[numbers.size()] : "", count));
  return numbers;
}

Vectors from_vectors(const py::iterable& words, const FloatRows& vectors, const py::object& counts) {
  if (vectors.ndim() != 2)
    raise(error(Code::kInvalidArgument, "vectors have ", vectors.ndim(),
                " dimensions; they must have two: words x values"));
  std::vector<std::string> each;
  for (const py::handle word : words) each.push_back(key_of(word));
  const std::vector<int64_t> numbers = counts_of(each, counts);
  const MatrixView<const float> rows{vectors.data(), vectors.shape(0), vectors.shape(1), vectors.shape(1)};
  return {value_or_raise(WordVectors::from_vectors(each, rows, numbers)), {}};
}

void save(const Vectors& self, const py::object& directory) {
  const std::string path = path_of(directory);
  Status saved;
  {
    const OthersRun others_run;
    saved = self.of.save(path);
  }
  raise_unless_ok(saved);
}

void export_vectors(const Vectors& self, const py::object& file, const std::string& format) {
  const std::string path = path_of(file);
  Status written;
  {
    const OthersRun others_run;
    written = self.of.export_vectors(path, format);
  }
  raise_unless_ok(written);
}

std::string vectors_text(const Vectors& self) {
  std::ostringstream text;
  text << "<streamvec.WordVectors: " << self.of.size() << " words, " << self.of.vector_size() << " dimensions, "
       << self.of.model() << ">";
  return text.str();
}

}  // namespace

void bind_vectors(py::module_& module) {
  py::class_<Vectors>(
      module, "WordVectors",
      "The words of a model and their vectors, at one moment; nothing changes it.\n\n"
      "v[\"king\"] is the vector of a word, float32, a read-only view that keeps the model alive; \"king\" in v\n"
      "says whether the word was seen in training, len(v) how many were. Words are looked up as written, else\n"
      "case-folded. Models that read spellings (hybrid, rbsg, subword) have a vector for words never seen, too;\n"
      "with others such a word is a KeyError. May be used from several threads at once.")
      .def_static("load", load, py::arg("directory"),
                  "The newest sound checkpoint of a model directory. FileNotFoundError when it holds no model.")
      .def_static("import_vectors", import_vectors, py::arg("path"),
                  "Vectors that another program wrote: word2vec (text, binary), GloVe, fastText (.vec, .bin), npy,\n"
                  "safetensors, TensorBoard's projector; also compressed. The format is found out.")
      .def_static(
          "from_vectors", from_vectors, py::arg("words"), py::arg("vectors"), py::arg("counts") = py::none(),
          "A copy of words and an array (words x values) at hand. Counts are whole numbers, as floats, too.\n"
          "Without them, or where all are 0, words count as a text with words in this order of frequency would\n"
          "have them.")
      .def("save", save, py::arg("directory"),
           "Makes a new model directory of these vectors, which `train` can go on with. FileExistsError when it holds\n"
           "a model. Models that read spellings by a network (hybrid, rbsg) are copied with their directory instead.")
      .def("export_vectors", export_vectors, py::arg("path"), py::arg("format"),
           "Writes a file for other programs: word2vec, word2vec-bin, glove, npy, safetensors, projector,\n"
           "fasttext-bin. It appears whole or not at all.")
      .def("__len__", [](const Vectors& self) { return self.of.size(); })
      .def(
          "__contains__",
          [](const Vectors& self, const py::object& word) {
            return PyUnicode_Check(word.ptr()) && self.of.find(word_of(word)) != kNoSlot;
          },
          py::arg("word"), "Whether the word was seen in training.")
      .def(
          "__iter__", [](Vectors& self) { return py::iter(index_to_key(self)); }, "The words, by index.")
      .def(
          "__getitem__", [](const py::object& self, const py::str& word) { return get_vector(self, word, false); },
          py::arg("word"), "The vector of a word: a read-only view; of a word never seen, made from its spelling.")
      .def("__getitem__", get_vectors, py::arg("words"), "The vectors of several words, one a row: a copy.")
      .def("__repr__", vectors_text)
      .def("get_vector", get_vector, py::arg("word"), py::arg("norm") = false, "v[word]; with norm a copy of length 1.")
      .def("get_index", get_index, py::arg("word"), "The row of a word in `vectors`. KeyError when it was never seen.")
      .def_property_readonly("index_to_key", index_to_key, "The words by index, as a tuple.")
      .def_property_readonly("key_to_index", key_to_index, "The indexes by word; cannot be changed.")
      .def_property_readonly(
          "vectors",
          [](const py::object& self) {
            const MatrixView<const float> rows = self.cast<const Vectors&>().of.vectors();
            return view(self, rows.data, {rows.rows, rows.cols},
                        {static_cast<py::ssize_t>(rows.stride * sizeof(float)), sizeof(float)});
          },
          "All vectors, words x values: a read-only view. Rows are 64 bytes apart or a multiple of that, so that\n"
          "the array is contiguous only if 16 divides vector_size; numpy.ascontiguousarray() makes a copy that is.")
      .def_property_readonly(
          "counts",
          [](const py::object& self) {
            const std::span<const int64_t> counts = self.cast<const Vectors&>().of.snapshot().vocabulary.counts();
            return view(self, counts.data(), {static_cast<py::ssize_t>(counts.size())}, {sizeof(int64_t)});
          },
          "How often each word was met, by index: a read-only view.")
      .def_property_readonly(
          "vector_size", [](const Vectors& self) { return self.of.vector_size(); }, "Values of a vector.")
      .def_property_readonly(
          "model", [](const Vectors& self) { return self.of.model(); }, "sgns, cbow, subword, glove, rbsg or hybrid.")
      .def_property_readonly(
          "step", [](const Vectors& self) { return self.of.step(); },
          "Pieces of text that training took; 0 for vectors from elsewhere.")
      .def_property_readonly(
          "generates", [](const Vectors& self) { return self.of.generates(); },
          "Whether words never seen have vectors.")
      .def_property_readonly(
          "notes", [](const Vectors& self) { return strs_of(self.notes); },
          "What loading met on the way: damaged checkpoints that were passed over.")
      .def("most_similar", most_similar, py::arg("positive") = py::none(), py::arg("negative") = py::none(),
           py::arg("topn") = 10,
           "[(word, cosine)], nearest first: the words nearest to the mean of the positive words (unit vectors) less\n"
           "the negative ones. Each may be a word, a vector, or a list of both; words given are left out. Of a hybrid\n"
           "model all are taken without the mean of its vectors and with long directions shortened. ValueError when\n"
           "they cancel each other out.")
      .def("similarity", similarity, py::arg("a"), py::arg("b"), "The cosine of two words.")
      .def("doesnt_match", doesnt_match, py::arg("words"), "The word that lies farthest from the mean of all.");
}

}  // namespace streamvec::python
