// The tables that a model trains, with what its optimiser keeps beside them. Shared by all training threads without
// locks: two threads that meet in a row may lose part of one step, which SGD forgives (Niu et al. 2011, Hogwild). Of
// the most frequent rows each has copies (hot_rows.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "streamvec/core/crew.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/row_marks.h"
#include "streamvec/core/status.h"
#include "streamvec/cuda/sgns_trainer.h"
#include "streamvec/model/glove.h"
#include "streamvec/model/hot_rows.h"
#include "streamvec/model/hybrid.h"
#include "streamvec/model/rbsg.h"
#include "streamvec/model/row_locks.h"
#include "streamvec/model/subword_table.h"
#include "streamvec/model/table.h"
#include "streamvec/optim/optimizer.h"

namespace streamvec {

class Parameters {
 public:
  struct Options {
    int64_t rows = 0;      // the vocabulary's size
    int64_t rows_max = 0;  // how far it may grow; 0: not at all
    int64_t dim = 200;
    OptimizerKind optimizer = OptimizerKind::kSgd;
    uint64_t seed = 1;
    int32_t threads = 1;  // that train on the tables
    bool glove = false;   // rows of the output table are drawn, too; `glove` is there
  };
  // kResourceExhausted when rows, as they are to begin with, do not fit in memory. What they grow by later is not
  // known.
  static Status check_memory(const Options& options);
  // New rows of the input table are uniform in +-0.5/dim, each from its own seed; those of the output table are zero.
  static Result<Parameters> make(const Options& options);

  // REQUIRES: no thread trains meanwhile on rows that are not there yet; rows <= rows_max.
  void grow(int64_t rows);
  // The row begins anew, for another word: as a new one of seed `draw` would, with nothing known to the optimiser.
  // Threads may be training on it: what they add meanwhile is lost or stays, as noise. REQUIRES: row < rows_max.
  void restart(int64_t row, uint64_t draw);
  // Tells a model that reads spellings the slot's word: of every new word, and again when the slot changes hands.
  void set_word(Slot slot, std::string_view word);
  int64_t rows() const { return input.rows.rows(); }
  int64_t dim() const { return options.dim; }

  Options options;
  Table input, output;
  std::optional<SubwordTable> subwords;  // of the subword model, whose words' own rows are in `input`
  std::unique_ptr<Hybrid> hybrid;        // of the hybrid model: what makes vectors of spellings
  std::optional<GloveTables> glove;      // of the glove model: words' rows are in `input`, contexts' in `output`
  std::unique_ptr<Rbsg> rbsg;            // of the rbsg model, whose tables are not trained
  RowLocks locks;
  HotSlots hot_input, hot_output;  // rows that threads keep copies of; none where one thread trains alone
  // Of a run on the card: what trains there. The rows here are those of the last fetch_rows().
  std::shared_ptr<cuda::SgnsTrainer> card;
  // With what the optimiser keeps. Thread-safe; a row that begins anew meanwhile is its new word's. Nothing to do
  // without `card`.
  Status fetch_rows();
  Status put_rows();  // the other way. REQUIRES: `card`, and no thread trains
  // Of a cluster on a stream: the rows that training has changed, 2 * slot in the input table, 2 * slot + 1 in the
  // output table.
  std::unique_ptr<RowMarks> changed;
  void note_changed(std::span<const Slot> inputs, std::span<const Slot> outputs) {
    if (changed == nullptr) return;
    for (const Slot slot : inputs) changed->mark(2 * int64_t{slot});
    for (const Slot slot : outputs) changed->mark(2 * int64_t{slot} + 1);
  }
  // Of a cluster: threads that train look in between two blocks, to help with the rows that travel.
  std::unique_ptr<Crew> crew;
  void look_in() {
    if (crew != nullptr) crew->look_in();
  }

 private:
  void draw_rows();
  void draw_row(int64_t row, uint64_t draw);
  void put_on_card(int64_t row);
  Matrix& adagrad_sums(Table& table) { return *table.optimizer->states().front().values; }

  // Of a run on the card: rows here and there begin anew together.
  std::unique_ptr<std::mutex> row_mutex_ = std::make_unique<std::mutex>();
};

}  // namespace streamvec
