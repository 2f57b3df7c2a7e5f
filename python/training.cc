// train(), train_documents() and what they take and give.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <type_traits>

#include "python/binding.h"
#include "python/caller.h"
#include "streamvec/train/trainer.h"

namespace streamvec::python {
namespace {

// A field of TrainOptions and of the structs in it, by its own name.
struct Field {
  const char* name;
  void (*set)(TrainOptions& options, py::handle value);
};

template <typename T>
void assign(T& field, py::handle value) {
  try {
    field = value.cast<T>();
  } catch (const py::cast_error&) {
    if (std::is_arithmetic_v<T> && PyLong_Check(value.ptr())) throw std::out_of_range("");
    throw;
  }
}
template <typename T>
void assign(std::optional<T>& field, py::handle value) {
  assign(field.emplace(), value);
}
void assign(HalfLife& field, py::handle value) {
  field = value_or_raise(HalfLife::parse(py::str(value).cast<std::string>()));
}
void assign(TokenizerOptions::Split& field, py::handle value) {
  const auto name = value.cast<std::string>();
  if (name != "words" && name != "whitespace")
    raise(error(Code::kInvalidArgument, "tokenizer is \"", name, "\"; it must be words or whitespace"));
  field = name == "words" ? TokenizerOptions::Split::kWords : TokenizerOptions::Split::kWhitespace;
}

std::vector<std::string> paths_of(const py::iterable& given) {
  std::vector<std::string> paths;
  for (const py::handle path : given) paths.push_back(path_of(path));
  return paths;
}
void assign_path(std::string& field, py::handle value) {
  field = path_of(value);
}
void assign_path(std::vector<std::string>& field, py::handle value) {
  if (!PySequence_Check(value.ptr()) || PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()))
    throw py::cast_error();
  field = paths_of(py::reinterpret_borrow<py::iterable>(value));
}

#define STREAMVEC_FIELD(name, where)                                                      \
  Field {                                                                                 \
#name, [](TrainOptions & options, py::handle value) { assign(options.where, value); } \
  }
#define STREAMVEC_PATH_FIELD(name, where)                                                      \
  Field {                                                                                      \
#name, [](TrainOptions & options, py::handle value) { assign_path(options.where, value); } \
  }
constexpr std::array kFields = {STREAMVEC_FIELD(model, model),
                                STREAMVEC_FIELD(dim, dim),
                                STREAMVEC_FIELD(window, window),
                                STREAMVEC_FIELD(negatives, negatives),
                                STREAMVEC_FIELD(sample, sample),
                                STREAMVEC_FIELD(pace, pace),
                                STREAMVEC_FIELD(min_count, min_count),
                                STREAMVEC_FIELD(epochs, epochs),
                                STREAMVEC_FIELD(threads, threads),
                                STREAMVEC_FIELD(lr, lr),
                                STREAMVEC_FIELD(schedule, schedule),
                                STREAMVEC_FIELD(optimizer, optimizer),
                                STREAMVEC_FIELD(kernel, kernel),
                                STREAMVEC_FIELD(device, device),
                                STREAMVEC_FIELD(table, table),
                                STREAMVEC_FIELD(products, products),
                                STREAMVEC_FIELD(batch, batch),
                                STREAMVEC_FIELD(vocab_max, vocab_max),
                                STREAMVEC_FIELD(minn, minn),
                                STREAMVEC_FIELD(maxn, maxn),
                                STREAMVEC_FIELD(bucket, bucket),
                                STREAMVEC_FIELD(jamo, jamo),
                                STREAMVEC_FIELD(x_max, glove.x_max),
                                STREAMVEC_FIELD(alpha, glove.alpha),
                                STREAMVEC_FIELD(memory_mb, glove.memory_mb),
                                STREAMVEC_FIELD(hidden, hidden),
                                STREAMVEC_FIELD(character_dim, character_dim),
                                STREAMVEC_FIELD(cell, cell),
                                STREAMVEC_FIELD(seed, seed),
                                STREAMVEC_FIELD(checkpoint_every_s, checkpoint_every_s),
                                STREAMVEC_FIELD(tokenizer, tokenizer.split),
                                STREAMVEC_FIELD(fold_case, tokenizer.fold_case),
                                STREAMVEC_FIELD(nfkc, tokenizer.nfkc),
                                STREAMVEC_PATH_FIELD(stop_words, stop_words),
                                STREAMVEC_FIELD(stem, stem),
                                STREAMVEC_PATH_FIELD(lemmas, lemmas),
                                STREAMVEC_FIELD(stream, stream.on),
                                STREAMVEC_FIELD(half_life, stream.half_life),
                                STREAMVEC_FIELD(replay, stream.replay),
                                STREAMVEC_FIELD(replay_ratio, stream.replay_ratio),
                                STREAMVEC_FIELD(replay_chunks, stream.replay_chunks),
                                STREAMVEC_FIELD(drop_duplicates, stream.drop_duplicates),
                                STREAMVEC_FIELD(languages, stream.languages),
                                STREAMVEC_FIELD(evaluate_every_s, stream.evaluate_every_s),
                                STREAMVEC_FIELD(snapshot_every, stream.snapshot_every),
                                STREAMVEC_FIELD(drift, stream.drift),
                                STREAMVEC_PATH_FIELD(similarity, stream.similarity),
                                STREAMVEC_PATH_FIELD(analogy, stream.analogy)};
#undef STREAMVEC_PATH_FIELD
#undef STREAMVEC_FIELD

const Field* find_field(std::string_view name) {
  const auto field = std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return name == f.name; });
  return field == kFields.end() ? nullptr : &*field;
}

void set_field(const std::string& name, py::handle value, TrainOptions& options) {
  const Field* field = find_field(name);
  if (field == nullptr) throw py::type_error("there is no option " + name);
  try {
    field->set(options, value);
  } catch (const py::cast_error&) {
    throw py::type_error(name + " cannot be " + py::repr(value).cast<std::string>());
  } catch (const py::error_already_set& thrown) {
    if (!thrown.matches(PyExc_TypeError)) throw;
    throw py::type_error(name + " cannot be " + py::repr(value).cast<std::string>());
  } catch (const std::out_of_range&) {
    raise(error(Code::kInvalidArgument, name, " is ", py::repr(value).cast<std::string>(), ", which is out of range"));
  }
}

// As on the command line, some options of streams make a stream of what they are given for.
TrainOptions options_of(const py::dict& given) {
  TrainOptions options;
  for (const auto& [key, value] : given) set_field(key.cast<std::string>(), value, options);
  // The library's 0 stands for the model's own number, which is had by leaving the keyword out.
  if (given.contains("epochs") && options.epochs == 0)
    raise(error(Code::kInvalidArgument, "epochs is 0; it must be 1 to 1000000"));
  for (const char* name : {"half_life", "replay", "replay_ratio"})
    if (given.contains(name)) options.stream.on = true;
  return options;
}

TrainProgress train_sources(const py::iterable& sources, const py::object& out, const py::dict& given,
                            const py::object& progress, const py::object& counting) {
  const TrainOptions options = options_of(given);
  const std::vector<std::string> names = paths_of(sources);
  const std::string path = path_of(out);
  Caller caller({.progress = progress, .counting = counting});
  return caller.run([&](const TrainHooks& hooks) { return train(options, names, path, hooks); });
}

TrainProgress train_documents(const py::object& documents, const py::object& out, const py::dict& given,
                              const py::object& progress, const py::object& counting) {
  const TrainOptions options = options_of(given);
  const std::string path = path_of(out);
  DocumentSource::Options how;
  how.apart = options.stream.on;
  // An iterator cannot begin anew; what is none makes one each time.
  how.replayable = !how.apart && PyIter_Check(documents.ptr()) == 0;
  Caller caller({documents, how.replayable, progress, counting});
  return caller.run([&](const TrainHooks& hooks) {
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(std::make_unique<DocumentSource>(caller.reader(), how));
    return train(options, std::move(sources), path, hooks);
  });
}

std::string progress_text(const TrainProgress& progress) {
  std::ostringstream text;
  text << "<streamvec.TrainProgress: " << progress.tokens << " tokens, " << progress.vocab << " words, " << progress.dim
       << " dimensions, loss " << progress.loss << ">";
  return text.str();
}

void bind_progress(py::module_& module) {
  py::class_<TrainProgress>(module, "TrainProgress", "How far training is, or what came of it.")
      .def("__repr__", progress_text)
      .def_readonly("tokens", &TrainProgress::tokens, "Raw tokens read.")
      .def_readonly("pairs", &TrainProgress::pairs, "(Centre, context) pairs trained; of glove, cells.")
      .def_readonly("seconds", &TrainProgress::seconds, "Training time, without counting or loading.")
      .def_readonly("loss", &TrainProgress::loss,
                    "Mean loss of a pair since the last report; at the end, of the last epoch.")
      .def_readonly("lr", &TrainProgress::lr, "The learning rate.")
      .def_readonly("fraction", &TrainProgress::fraction, "Of the whole run; -1 when its length is unknown.")
      .def_readonly("epoch", &TrainProgress::epoch, "From 1.")
      .def_readonly("vocab", &TrainProgress::vocab, "Words that have a vector.")
      .def_readonly("dim", &TrainProgress::dim, "Values of a vector.")
      .def_readonly("model", &TrainProgress::model, "sgns, cbow, subword, glove, rbsg or hybrid.")
      .def_readonly("kernel", &TrainProgress::kernel, "The arithmetic that ran.")
      .def_readonly("bytes_replaced", &TrainProgress::bytes_replaced, "Bytes that were not UTF-8.")
      .def_readonly("words_dropped", &TrainProgress::words_dropped, "Overlong words.")
      .def_readonly("updates_refused", &TrainProgress::updates_refused, "Steps that were not finite.")
      .def_readonly("documents", &TrainProgress::documents, "Of a stream; -1 when it was none.")
      .def_readonly("prequential_loss", &TrainProgress::prequential_loss,
                    "Of a stream: the loss on text before it is trained on.")
      .def_readonly("bottleneck", &TrainProgress::bottleneck, "Of a stream: what the rest waits for.")
      .def_property_readonly(
          "notes", [](const TrainProgress& self) { return strs_of(self.notes); },
          "What was met on the way, a line each.");
}

void bind_document(py::module_& module) {
  py::class_<Document>(module, "Document", "A document with what a stream can make use of.")
      .def(py::init([](const py::object& text, const py::object& id, int64_t time_s, bool deleted) {
             return Document{text_of(text), "", text_of(id), time_s, deleted};
           }),
           py::arg("text"), py::kw_only(), py::arg("id") = "", py::arg("time_s") = 0, py::arg("deleted") = false)
      .def_property(
          "text", [](const Document& self) { return str_of(self.text); },
          [](Document& self, const py::object& text) { self.text = text_of(text); })
      .def_property(
          "id", [](const Document& self) { return str_of(self.id); },
          [](Document& self, const py::object& id) { self.id = text_of(id); },
          "Names the record, so that it can be deleted later; \"\": it has no name.")
      .def_readwrite("time_s", &Document::time_s, "When it was written, in seconds since 1970; 0: not known.")
      .def_readwrite("deleted", &Document::deleted, "The record `id` was withdrawn: what replay has of it goes.");
}

}  // namespace

bool is_option(std::string_view name) {
  return find_field(name) != nullptr;
}

void bind_training(py::module_& module) {
  bind_progress(module);
  bind_document(module);
  py::list names;
  for (const Field& field : kFields) names.append(field.name);
  module.attr("option_names") = py::tuple(names);
  module.def("train", train_sources, py::arg("sources"), py::arg("out"), py::arg("options"), py::arg("progress"),
             py::arg("counting"), "streamvec.train() with its options as a dict.");
  module.def("train_documents", train_documents, py::arg("documents"), py::arg("out"), py::arg("options"),
             py::arg("progress"), py::arg("counting"), "streamvec.train_documents() with its options as a dict.");
  py::module_::import("atexit").attr("register")(py::cpp_function(&Caller::stop_all));
}

}  // namespace streamvec::python

PYBIND11_MODULE(_native, module) {
  module.doc() = "The compiled part of streamvec; `import streamvec` has all of it under its own names.";
  module.attr("__version__") = STREAMVEC_VERSION;
  streamvec::python::bind_errors(module);
  streamvec::python::bind_vectors(module);
  streamvec::python::bind_training(module);
}
