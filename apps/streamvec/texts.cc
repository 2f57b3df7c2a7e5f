#include "apps/streamvec/texts.h"

#include <nlohmann/json.hpp>

#include "streamvec/core/durable_file.h"
#include "streamvec/ingest/open.h"
#include "streamvec/train/checkpoint_directory.h"
#include "streamvec/train/checkpoint_manifest.h"

namespace streamvec::cli {
namespace {

constexpr int64_t kDocumentsAtOnce = 64;
constexpr int64_t kStateBytesMax = int64_t{64} << 20;

// Tokenises one document and hands on its sentences, words without a slot left out.
class SentenceCutter {
 public:
  SentenceCutter(const TokenizerOptions& options, const Vocabulary& vocabulary)
      : tokenizer_(options), vocabulary_(vocabulary) {}

  void cut(const Document& document, const SentenceVisitor& visitor) {
    tokenizer_.tokenize(document.text, tokens_);
    slots_.resize(tokens_.words.size());
    vocabulary_.find(tokens_.words, slots_);
    size_t begin = 0;
    for (const int32_t end : tokens_.sentence_ends) {
      sentence_.clear();
      for (; begin < static_cast<size_t>(end); ++begin)
        if (slots_[begin] != kNoSlot) sentence_.push_back(slots_[begin]);
      if (!sentence_.empty()) visitor(sentence_);
    }
  }

 private:
  Tokenizer tokenizer_;
  const Vocabulary& vocabulary_;
  Tokens tokens_;
  std::vector<Slot> slots_, sentence_;
};

Result<nlohmann::json> read_state(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + kStateFile;
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, file.read_all(kStateBytesMax));
  STREAMVEC_ASSIGN_OR_RETURN(const CheckpointManifest manifest, CheckpointManifest::decode(text, path));
  return manifest.state;
}

template <typename T>
T value_or(const nlohmann::json& object, const char* name, T fallback) {
  try {
    return object.value(name, fallback);
  } catch (const nlohmann::json::exception&) {
    return fallback;
  }
}

}  // namespace

Result<TrainedOn> trained_on(const std::string& directory) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto checkpoints, list_checkpoints(directory));
  nlohmann::json run = nlohmann::json::object();
  for (const CheckpointPath& checkpoint : checkpoints)
    if (const auto state = read_state(checkpoint.path); state.ok()) {
      run = state->is_object() ? state->value("run", run) : run;
      break;
    }
  TrainedOn trained;
  trained.sources = value_or(run, "sources", trained.sources);
  trained.pairs.window = value_or(run, "window", trained.pairs.window);
  trained.pairs.negatives = value_or(run, "negatives", trained.pairs.negatives);
  trained.pairs.sample = value_or(run, "sample", trained.pairs.sample);
  if (value_or<std::string>(run, "tokenizer", "words") == "whitespace")
    trained.tokenizer.split = TokenizerOptions::Split::kWhitespace;
  trained.tokenizer.fold_case = !value_or(run, "keep-case", false);
  trained.tokenizer.nfkc = !value_or(run, "no-nfkc", false);
  return trained;
}

Result<std::vector<std::string>> sources_still_there(const TrainedOn& trained, const std::string& directory) {
  if (trained.sources.empty())
    return error(Code::kFailedPrecondition, directory,
                 " does not say what it was trained on; give the text by --text F");
  const auto source = open_sources(trained.sources);
  if (!source.ok())
    return error(source.status().code(), "what ", directory, " was trained on cannot be read again (",
                 source.status().message(), "); give the text by --text F");
  if (!(*source)->capabilities().replayable)
    return error(Code::kFailedPrecondition, directory, " was trained on ", (*source)->name(),
                 ", which cannot be read again; give the text by --text F");
  return trained.sources;
}

SentenceStream sentences_of(std::vector<std::string> paths, TokenizerOptions tokenizer, const Vocabulary& vocabulary) {
  return [paths = std::move(paths), tokenizer, &vocabulary](const SentenceVisitor& visitor) -> Status {
    STREAMVEC_ASSIGN_OR_RETURN(const auto source, open_sources(paths));
    SentenceCutter cutter(tokenizer, vocabulary);
    std::vector<Document> documents;
    while (true) {
      documents.clear();
      STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, source->read(kDocumentsAtOnce, Deadline::never(), documents));
      if (count == 0) return {};
      for (const Document& document : documents) cutter.cut(document, visitor);
    }
  };
}

}  // namespace streamvec::cli
