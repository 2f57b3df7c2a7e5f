// The generator beside the tables of the hybrid model: an n-gram bag (ngram_bag.h) that learns from the words' rows all
// the time they are trained, and answers where a word has no row. It is taught in one of two ways.
//
// By moves, where this process alone trains the rows, on the CPU and on files: what a word's row has moved by is shared
// with its n-grams, and so with all words spelled alike; a row is then what its n-grams and its own moves make
// together. That is fastText's way, but rows are trained in place as skip-gram's are, and moves are shared once in a
// while: those of a word met n times after n / 64 occurrences, so that frequent words, which have most of the
// occurrences, cost little. A word never met is what its n-grams make, with the mean of all rows in the place of what
// is not known of it. Vectors are served with half of what they have along the two directions in which all rows spread
// most: that says more of how often words are met than of what they mean.
//
// By rows, of streams, on a card and where several nodes train them: the bag is fitted to rows. A row t of a word met n
// times is the mean m of all rows, plus what the word means, which grows as it is trained, plus noise. What it means is
// taken to be x = (t - m) sqrt(L / |t - m|), where L is the length that t - m has for well-known words (as it is where
// it is longer): a row hardly trained is little more than m, and by their cosines such rows are all alike. The bag
// learns x, weighted by n / (n + 100). A word's vector as it is served is
//   m + n / (n + 12) x + 12 / (n + 12) g,   g what the bag makes of the spelling,
// and m + g for a word never met. While training goes on, from the third walk over the words on, a visit also blends m
// + g into the row itself where n < 1000, by half of 12 / (n + 12).
//
// docs/BENCHMARKS.md (Hybrid) has how all this was found.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/model/ngram_bag.h"
#include "streamvec/model/word_generator.h"
#include "streamvec/vocab/chunk.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

class Parameters;

// A word of some text, and how often that has it.
struct VisitedWord {
  Slot slot = 0;
  int32_t times = 0;
};

// An order that meets every slot once.
class SlotWalk {
 public:
  // Over the slots below `slots`, neighbours far apart.
  explicit SlotWalk(int64_t slots = 0);
  explicit SlotWalk(std::vector<Slot> order) : order_(std::move(order)), slots_(static_cast<int64_t>(order_.size())) {}
  int64_t slots() const { return slots_; }
  // REQUIRES: slots() > 0; place >= 0. After the last slot it begins again.
  Slot at(int64_t place) const {
    const int64_t in_turn = place % slots_;
    return order_.empty() ? static_cast<Slot>(in_turn * stride_ % slots_) : order_[static_cast<size_t>(in_turn)];
  }

 private:
  std::vector<Slot> order_;  // where it was given
  int64_t slots_, stride_ = 1;
};

// Takes half of what rows have along some directions.
class Narrowing {
 public:
  // Rows of length 1 and at right angles, or of zeros.
  explicit Narrowing(MatrixView<const float> directions);
  void operator()(std::span<float> row) const;

 private:
  std::vector<std::vector<float>> directions_;
};

// Thread-safe.
class Hybrid {
 public:
  static constexpr int64_t kRareMet = 16;  // occurrences up to which a word is rare, where moves teach
  struct Options {
    int64_t dim = 200;
    int64_t words_max = 0;     // slots below this may get a word
    bool fold_case = false;    // the vocabulary is case-folded: spellings that are asked for have to be, too
    NgramBagOptions bag = {};  // its by_moves: how it is taught; which functions are for which way is said below
  };
  // Of one that is taught by moves: fewer n-grams, as these cost most of the time and say no less.
  static NgramBagOptions moved_bag() { return {.minn = 4, .maxn = 6, .length_step = 2, .by_moves = true}; }
  // kResourceExhausted for more words or buckets than fit.
  static Result<std::unique_ptr<Hybrid>> make(const Options& options);

  // Tells the slot's word: of every word, and again when the slot changes hands; nothing is known of how it is met
  // then.
  void set_word(Slot slot, std::string_view word);
  // Writes where a row of a new word begins: what its spelling says. False, and nothing is written, while that is
  // nothing, and, taught by rows, while many words are new: rows that the bag has written teach it what it says
  // already. REQUIRES: the slot's word was told.
  bool start_row(Slot slot, float* row);

  // Whether anything is known of any spelling. Taught by rows: whether the vocabulary was gone over once.
  bool has_learnt() const;
  // The mean of all words' rows, which every vector that is served has in it, as it is served. Zeros while nothing was
  // learnt. Taught by moves: as the last note_common() found it.
  std::vector<float> mean() const;
  // Taught by moves: finds what rows have in common, their mean and where they spread most, for vectors to be served.
  void note_common(Parameters& parameters);
  // Likewise: makes a row that is trained one that is served, by what the last note_common() found.
  Narrowing narrowing() const;
  // The vector of any spelling as it is served, to a padded row. Zeros while nothing was learnt.
  void make_vector(std::string_view word, float* row) const;

  // Taught by moves. Before some text is trained on, its words, each once: rows take up what the moves of others have
  // done to their n-grams. After it: counts them as met, and shares the moves that are due. While a checkpoint is
  // written, or words are told, nothing is taken up or shared; it is made up for at the next visits.
  bool by_moves() const { return options_.bag.by_moves; }
  struct Due {
    Slot slot;
    int32_t place;  // among the words of a visit
  };
  struct Scratch {  // of a thread, from take_up() to share_moves() of the same words
    NgramBag::Scratch bag;
    std::vector<Due> due;
    RowBuffer rows, made_rows;
    std::vector<float*> made;  // by place: what a rare word's row was made as
  };
  void take_up(std::span<const VisitedWord> words, Parameters& parameters, Scratch& scratch);
  void share_moves(std::span<const VisitedWord> words, Parameters& parameters, Scratch& scratch);

  // Taught by rows. After training on a chunk: counts its words as met and distils a share of the vocabulary that goes
  // with the chunk's length. A thread that finds another one distilling leaves its share to the next.
  void learn(const Chunk& chunk, Parameters& parameters);
  // How often the words were met, for a cluster to sum up: those of slots 0 .. met.size() - 1.
  void copy_met(std::span<float> met) const;
  // Adds what other nodes have met; less than nothing where this one has begun with more. REQUIRES: no count
  // comes below 0.
  void add_met(std::span<const float> more);

  // Of a stream's cluster, where the node that leads makes the generator. The others only count, from only_count() on:
  // nothing is kept of spellings, and rows of new words begin as they are drawn. One that comes to lead tells all words
  // with restore_word() and distils from then on, at first by finish().
  Status only_count();
  void begin_to_distil() { distils_ = true; }
  // So many nodes, this one included, distil from rows whose changes are summed up: each blends its share into a row,
  // since all may do so at once. Their walks being as many fewer, rows get that part of what they would get on one
  // node.
  void set_distilling_nodes(int32_t nodes) { distilling_nodes_ = nodes; }
  bool distils() const { return distils_; }
  // How often the slot's word was met, and all words by this node's own training. REQUIRES: slot < words_max.
  int64_t met(Slot slot) const { return met_[static_cast<size_t>(slot)].load(std::memory_order_relaxed); }
  int64_t met_here() const { return met_here_.load(std::memory_order_relaxed); }
  // Another node has met the word so often. That is distilled, too: by whoever calls distil_for_others() again and
  // again, a few milliseconds' work at a time, since this node may have hardly any text itself.
  void add_met(Slot slot, int64_t times);
  void distil_for_others(Parameters& parameters);
  // At the end of a run: all moves are shared and taken up, or every word is distilled a few times more, so that the
  // bag is that of the last rows.
  void finish(Parameters& parameters);

  // The vectors of the first `rows` words as queries read them. Threads may be training meanwhile.
  Result<Matrix> served_rows(Parameters& parameters, int64_t rows) const;

  // What a checkpoint keeps, of one moment: while it lives the bag stays as it is. Threads may be training meanwhile.
  // REQUIRES: no word is told as long as it lives, and it goes on the thread that has asked for it.
  struct Saved {
    std::unique_lock<std::shared_mutex> still;
    std::string state;
    MatrixView<const float> rows, duals;  // of the bag, borrowed
    MatrixView<const float> composed;     // taught by moves: what rows were made as; no rows where all are so still
  };
  Saved save() const;
  // The same generator again, to which the words have yet to be told with restore_word(). kDataLoss, with `path`, for
  // a state that save() does not write and for tables of other shapes.
  static Result<std::unique_ptr<Hybrid>> restore(std::string_view bytes, const std::string& path, int64_t words_max,
                                                 MatrixView<const float> rows, MatrixView<const float> duals);
  // Taught by moves and about to be taught further: what rows were made as when they were saved, where that was kept.
  // kDataLoss for a table of another shape.
  Status restore_composed(MatrixView<const float> composed, const Parameters& parameters);
  // One that was taught by moves begins anew, to be taught by rows; it keeps what it knows of how often words were met.
  Result<std::unique_ptr<Hybrid>> to_be_taught_by_rows() const;
  // A copy that makes vectors of spellings as this one does now; it knows no slot's word. Threads may be training
  // meanwhile.
  Result<std::unique_ptr<Hybrid>> copy_spellings() const;
  // As set_word(), for a word of which it is known how often it was met: one that was known when the state was saved.
  void restore_word(Slot slot, std::string_view word);

  const NgramBag& bag() const { return bag_; }
  const Options& options() const { return options_; }
  int64_t words() const { return words_; }

 private:
  enum Row { kMean, kSum, kTarget, kMade, kWide, kWideEnd = kWide + 2, kRowCount = kWideEnd };

  explicit Hybrid(const Options& options) : options_(options) {}
  std::string encode() const;
  class Sharing;
  std::unique_lock<std::shared_mutex> keep_still() const;
  bool start_row_by_moves(Slot slot, float* row);
  // Its moves are shared after every visit.
  bool is_rare(Slot slot) const { return met(slot) < kRareMet; }
  int64_t shares_now() const;
  int64_t wait_of(Slot slot, int64_t shares) const;
  bool claim(Slot slot);
  void release(Slot slot, bool kept, int32_t waiting);
  bool is_claimed(Slot slot) const;
  bool is_kept(Slot slot) const;
  int64_t waiting(Slot slot) const;
  void share_and_take_up(Slot slot, float* known, Parameters& parameters, Scratch& scratch);
  void take_up_row(Slot slot, Parameters& parameters, Scratch& scratch);
  void share_move(Slot slot, float* known, Parameters& parameters, Scratch& scratch);
  template <typename Do>
  void for_each_due(Parameters& parameters, std::span<const Due> all, const Do& act);
  void hold_back_mean(Slot slot, const float* row, float* shared);
  void finish_sharing(Parameters& parameters);
  double distil_next(Parameters& parameters, bool blends);
  double fit(Slot slot, float* target);
  void blend_into_row(Parameters& parameters, Slot slot, int64_t told);
  void begin_pass();
  void end_pass();
  bool means_can_be() const;
  Narrowing narrowed() const;
  void blend(Slot slot, float* made, float* row) const;
  float take_meaning(float* row) const;
  int32_t dim() const { return static_cast<int32_t>(options_.dim); }

  const Options options_;
  std::vector<std::atomic<uint32_t>> met_;  // by slot: how often its word was trained on
  std::atomic<int64_t> met_here_ = 0;
  std::atomic<bool> distils_ = true;
  std::atomic<int32_t> distilling_nodes_ = 1;
  std::atomic<double> work_ = 0;         // rows of n-grams that wait to be touched
  std::atomic<double> others_work_ = 0;  // likewise, for what other nodes have met
  // Held by who distils, or saves, before mutex_; taught by moves, by all who share and whoever tells words, too.
  mutable std::shared_mutex teaching_;
  mutable std::atomic<int32_t> wanted_still_ = 0;  // threads that wait for teaching_ to themselves
  mutable std::mutex mutex_;                       // of what follows, but for the row kTarget and what moves teach
  NgramBag bag_;
  // Taught by moves: by slot, what the row of a word that is not rare, or whose move could not be shared, was made as;
  // occurrences since then, whether there is such a row (kKept), and whether a thread is at it (kClaimed).
  Matrix composed_;
  static constexpr uint32_t kClaimed = uint32_t{1} << 31, kKept = uint32_t{1} << 30;
  std::vector<std::atomic<uint32_t>> since_;
  std::atomic<int64_t> trained_ = 0;  // occurrences in all
  std::atomic<bool> settled_ = true;  // rows are what was composed
  // Of the words' rows: their mean as the last pass found it, their sum in this one; scratch; from kWide on the
  // directions in which they spread most.
  Matrix rows_;
  int64_t words_ = 0;  // slots below this have words
  int64_t told_ = 0;   // words told so far; when this pass began; when the one before did
  int64_t told_begun_ = 0, told_before_ = 0;
  SlotWalk walk_;      // over the words
  int64_t place_ = 0;  // in it
  int64_t passes_ = 0;
  double sum_weight_ = 0, sum_length_ = 0, sum_length_weight_ = 0;  // of this pass
  double length_ = 0;                                               // of well-known words' vectors without the mean
};

}  // namespace streamvec
