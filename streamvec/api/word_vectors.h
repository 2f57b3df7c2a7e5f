// Words and their vectors, for programs that use a model: what Python calls WordVectors, under the same names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

struct ScoredWord {
  std::string word;
  float score = 0;  // cosine
};

// A word, or a vector of one's own.
using WordOrVector = std::variant<std::string, std::vector<float>>;

// A model at one moment. Nothing changes it: a directory that is trained further meanwhile is loaded again to be seen.
// Copies share the vectors, which live as long as any copy. Thread-safe.
//
// Words are looked up as written, else case-folded. Where the model makes vectors of spellings (subword, rbsg, hybrid)
// a word it has never seen has one, too; otherwise it is kNotFound.
class WordVectors {
 public:
  // The newest sound checkpoint of a model directory. `notes` gets what the user should hear (damaged ones that were
  // passed over); it may be nullptr. kNotFound: no model there. kDataLoss: all are damaged.
  static Result<WordVectors> load(const std::string& directory, std::vector<std::string>* notes = nullptr);
  // From the file of another program (format/vectors.h).
  static Result<WordVectors> import_vectors(const std::string& path);
  // A copy of vectors at hand. Counts may be empty, or all 0: words then count as a text of words in this order would
  // have them.
  // kInvalidArgument: not as many rows (or counts) as words, a word twice, empty or overlong, a value not finite.
  static Result<WordVectors> from_vectors(std::span<const std::string> words, MatrixView<const float> vectors,
                                          std::span<const int64_t> counts = {});

  // A new model directory with these vectors, which training can go on with. Errors as save_snapshot()'s.
  Status save(const std::string& directory) const;
  // As `streamvec export` does; format: word2vec, word2vec-bin, glove, npy, safetensors, projector, fasttext-bin.
  Status export_vectors(const std::string& path, const std::string& format) const;

  int64_t size() const { return snapshot().vocabulary.size(); }
  int64_t vector_size() const { return snapshot().dim(); }
  const std::string& model() const { return snapshot().model; }
  int64_t step() const { return snapshot().step; }
  // Whether words never seen have vectors.
  bool generates() const { return snapshot().generator != nullptr; }

  // The word's slot, its row in vectors(); kNoSlot when it was never seen.
  Slot find(std::string_view word) const;
  std::string_view word(Slot slot) const { return snapshot().vocabulary.word(slot); }  // REQUIRES: 0 <= slot < size()
  int64_t count(Slot slot) const { return snapshot().vocabulary.count(slot); }         // likewise
  MatrixView<const float> vectors() const { return snapshot().input.view(); }          // by slot
  // A copy.
  Result<std::vector<float>> get_vector(std::string_view word) const;

  // The topn words nearest to the mean of the positive words' unit vectors less the negative ones', nearest first;
  // those words themselves are left out. Vectors count as they are. Of a hybrid model all are seen without the mean of
  // all words (SearchSpace, eval/neighbours.h), so that scores are not those of similarity(). kInvalidArgument: none
  // given, all of them cancel each other out, a vector of another size or not finite. Where all that is given is 0, so
  // are the scores. The first call makes a copy of all vectors with length 1 (kResourceExhausted).
  Result<std::vector<ScoredWord>> most_similar(const std::vector<WordOrVector>& positive,
                                               const std::vector<WordOrVector>& negative = {}, int32_t topn = 10) const;
  // The cosine of two words.
  Result<double> similarity(std::string_view a, std::string_view b) const;
  // The word that lies farthest from the mean of all. kInvalidArgument: no words.
  Result<std::string> doesnt_match(const std::vector<std::string>& words) const;

  const Snapshot& snapshot() const;

 private:
  struct State;
  explicit WordVectors(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static WordVectors holding(Snapshot snapshot, std::string origin);
  Result<std::vector<float>> unit_vector(std::string_view word) const;

  std::shared_ptr<State> state_;
};

}  // namespace streamvec
