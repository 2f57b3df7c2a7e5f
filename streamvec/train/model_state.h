// What a model has beyond the two tables of rows (model/parameters.h): how it is checked, begun, saved, and asked for
// words never seen. Checkpoints and imports know models through this alone, the loops nearly; a model with tables only
// needs nothing of it and has the functions as they are here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/model/parameters.h"
#include "streamvec/model/snapshot.h"
#include "streamvec/train/checkpoint.h"
#include "streamvec/train/trainer.h"

namespace streamvec {

class ModelState {
 public:
  virtual ~ModelState() = default;

  // kInvalidArgument for options of the model's own that cannot be; the message names the option.
  virtual Status check_options(const TrainOptions& options) const;
  // kFailedPrecondition with both values when the options ask for another shape than the checkpoint's.
  virtual Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const;
  // Before parameters are made of a checkpoint: puts the rows that are trained in the place of `input`, where that
  // holds what queries read.
  virtual Status take_rows(Checkpoint& existing) const;
  // Gives new parameters what the model has beside the tables: what `existing` kept (nullptr: nothing), then all words
  // of the vocabulary. Words that come later are told by Parameters::set_word().
  virtual Status begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                       Parameters& parameters) const;
  // Whether the two halves of a stream, which tell drift from chance, can be trained by workers over further
  // Parameters.
  virtual bool has_halves() const;

  // What is left to do when all text was trained on and no thread trains any more.
  virtual void finish(Parameters& parameters) const;

  // The word vectors as queries read them, those of the first `rows` slots. Threads may be training meanwhile.
  virtual Result<Matrix> input_rows(Parameters& parameters, int64_t rows) const;
  // What makes vectors of spellings as it is now, a copy; nullptr for models that make none. Threads may be training
  // meanwhile; words are looked at while what `lock_words` gives is held, where there is a need.
  using LockWords = std::function<std::unique_lock<std::mutex>()>;
  virtual Result<std::shared_ptr<const WordGenerator>> spellings(Parameters& parameters,
                                                                 const LockWords& lock_words) const;
  // Adds what a checkpoint keeps of the model, or changes what is there. What content borrows of this object is good
  // until the next call. Threads may be training meanwhile.
  virtual Status add_to(CheckpointContent& content, Parameters& parameters);
  // Likewise for a snapshot that another program's file has given, which is borrowed, too.
  virtual Status add_to(CheckpointContent& content, const Snapshot& snapshot);

  // Whether queries read a table or file of a checkpoint beside input and output.
  virtual bool is_for_queries(std::string_view name) const;
  // What makes vectors of spellings, of those tables and files; nullptr when there are none. `directory` is the
  // checkpoint's, for messages.
  virtual Result<std::shared_ptr<const WordGenerator>> generator(Checkpoint& loaded,
                                                                 const std::string& directory) const;

 protected:
  // take_rows() for models that keep the rows they train in a table of that name, beside what queries read.
  static Status take_table(const char* name, Checkpoint& existing);
};

// Of the --model of that name; one with tables only for a name that is not known.
std::unique_ptr<ModelState> make_model_state(std::string_view model);

}  // namespace streamvec
