// RBSG, skip-gram over generated vectors: a word's vector is what a character LSTM makes of its spelling. Two encoders,
// one for centres and one for contexts and negatives, trained on the skip-gram objective with Muon (optim/muon.h; Adam
// for what is no matrix of weights: biases and characters) or with Adam alone. No row belongs to a
// word, so that any word has a vector, seen or not, and the model is a few MB.
//
// A batch costs what its distinct beginnings cost (char_trie.h). Its words are cut among threads in alphabetical order,
// where neighbours share beginnings, and each thread runs its part of both encoders by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/core/thread_team.h"
#include "streamvec/core/turns.h"
#include "streamvec/cuda/rbsg_trainer.h"
#include "streamvec/model/rbsg_batch.h"
#include "streamvec/model/rbsg_vectors.h"
#include "streamvec/model/skip_gram_loss.h"
#include "streamvec/model/spelling.h"
#include "streamvec/model/trie_lstm.h"
#include "streamvec/optim/muon.h"
#include "streamvec/optim/shared_slopes.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

struct RbsgOptions {
  int32_t dim = 200;
  int32_t hidden = 512;         // a multiple of 16; time goes with its square
  int32_t character_dim = 128;  // values of a character
  int32_t negatives = 10;       // what a pool weighs for each pair
  int32_t threads = 1;
  uint64_t seed = 1;
  CharacterTable::Options characters{};
  RecurrentCell cell = RecurrentCell::kLstm;
  bool muon = true;        // false: Adam for everything
  bool fold_case = false;  // the words are case-folded: spellings that are asked for have to be, too
  // Of the encoders' products (kernel/packed_gemm.h). With `auto` embed() and embed_slots() take whole numbers of 8
  // bits for an LSTM's levels where the CPU has tiles of them; a kernel that is named is used for everything.
  std::string kernel = "simd";
  bool cuda = false;       // batches with a pool are trained on the card (cuda/rbsg_trainer.h)
  bool cuda_bf16 = false;  // there, products of levels are in bf16, else in tf32
};

// Thread-safe: what one thread asks for waits until the batch of another is done. One seed and one number of threads
// give the same bits.
class Rbsg {
 public:
  enum Side { kCentre, kContext };
  static constexpr int64_t kBatchPairs = 8'192;  // of a batch, unless another size is asked for
  // Of a node where all make one step of theirs: fewer rounds, and words of a batch share more. The rate is that of
  // kBatchPairs, times the root of how many more pairs all have together (sync/shared_step.h).
  static constexpr int64_t kSharedBatchPairs = 9'216;
  struct BatchStats {
    int64_t pairs = 0;
    double loss = 0;       // summed over the pairs, taken before the step
    bool refused = false;  // a slope was not finite: nothing was changed
    // What the batch cost: beginnings computed, those of them that cost rows of products, flops of all products (but
    // for those of a step that nodes share).
    int64_t nodes = 0, inner = 0;
    double flops = 0;
  };
  // A state of the model by its name in a checkpoint: parameters, moments of their slopes, step count. Matrices that
  // Muon steps have no variance: theirs is zero.
  struct Named {
    std::string name;
    Matrix* values;
  };

  // kInvalidArgument for sizes that cannot be, kResourceExhausted for those that do not fit, kFailedPrecondition for a
  // kernel this machine cannot run.
  static Result<std::unique_ptr<Rbsg>> make(const RbsgOptions& options);

  // Tells the spelling of a slot's word, and again when the slot changes hands. Characters met for the first time get
  // rows. Waits for no batch: the next one knows of it.
  void set_word(Slot slot, std::string_view word);
  // From now on characters get rows by admit() alone, which nodes that learn together tell in the same order, however
  // they hear of words. Rows that will come have their first values from here on.
  void share_characters();
  void admit(std::u32string_view characters);
  // One step on the mean loss of the pairs. REQUIRES: every slot's word was told; the batch's shape holds.
  // On the card it returns before the batch is done, with what earlier ones came to.
  BatchStats train_batch(const RbsgBatch& batch, float lr);
  bool failed() const;  // the card has; nothing is trained any more
  // Waits for what was begun on the card and returns what is not told yet. An error of the card stays.
  Result<BatchStats> settle();

  // Training goes on meanwhile: the vectors are those of the moment of the call.
  // Writes the vector of words[i], any words, to row i of `out`, on `threads` threads.
  // Words that share beginnings cost less together. kInvalidArgument for an empty word.
  Status embed(std::span<const std::string_view> words, Side side, int32_t threads, MatrixView<float> out);
  // The same for the words of slots 0 .. out.rows - 1, on as many threads as train. REQUIRES: they were told.
  Status embed_slots(Side side, MatrixView<float> out);

  // A copy of the centre's encoder, for words never seen.
  Result<std::shared_ptr<const RbsgVectors>> vectors();

  double steps() const;             // so far
  std::string kernel_name() const;  // "amx+int8": the second one for embed()
  // What a checkpoint keeps: copies of all states, at one moment.
  struct Copy {
    std::string name;
    Matrix values;
  };
  Result<std::vector<Copy>> copy_states();
  // Not to be used while another thread trains or tells words.
  // "rbsg.centre.input", "rbsg.centre.input.adam.mean", ..., "rbsg.steps". To load: restore_characters(), then fill.
  std::vector<Named> states();
  const CharacterTable& characters();
  // The encoders' values, without moments, for a cluster to bring in step between two batches. They stay where they
  // are, and as large as they are unless characters are shared: no words with new ones may be told then.
  struct SharedTable {
    Matrix* values;
    bool grows;  // with characters, where these are shared
  };
  std::vector<SharedTable> shared_tables();
  // From now on a batch leaves its slopes there, with the rate for one of so many pairs, and steps nothing: whoever
  // takes turns with batches does. Where it does not, they go with the next batch. No words with new characters may be
  // told any more.
  SharedSlopes& share_slopes(int64_t batch = kBatchPairs);
  bool leaves_steps() const { return shared_ != nullptr; }
  // From now on batches take turns with that. What changes values also holds what lock_values() gives, against those
  // who ask for vectors.
  void take_turns(std::shared_ptr<Turns> turns) { turns_ = std::move(turns); }
  ThreadTeam& team() { return team_; }  // to be used in turns with batches
  std::unique_lock<std::mutex> lock_values() const { return std::unique_lock(values_mutex_); }
  RbsgIndex index();
  // Gives the rows their characters back, those of "rbsg.*.characters" as many. kDataLoss as CharacterTable::restore.
  Status restore_characters(std::span<const char32_t> admitted);
  const RbsgOptions& options() const { return options_; }

 private:
  struct Encoder {
    EncoderParameters values, mean, variance;
  };
  // What a thread needs of its own for each side.
  struct Part {
    CharTrie trie;
    std::optional<TrieLstm> lstm;
    EncoderParameters slopes;
  };
  struct Lane {
    Part sides[2];
    double square = 0;
    double loss = 0;
    SkipGramLoss objective;
  };
  // One side of a batch: its vectors and their slopes, by distinct word.
  struct Vectors {
    RowBuffer values, slopes[2];  // slopes of pairs, of the pool: two threads may work on them
  };

  // Where training goes on when it does so elsewhere. The newest values are there or here, never partly.
  struct Card {
    std::unique_ptr<cuda::RbsgTrainer> trainer;
    std::string name;
    bool newest = false;
    cuda::RbsgTotals untold;  // of batches from before values came back: the trainer may not be asked again
    Status status;
  };

  explicit Rbsg(const RbsgOptions& options);
  Status find_card();
  BatchStats train_on_card(const RbsgBatch& batch, float lr);
  Status go_to_card();
  void come_back() const;
  Result<BatchStats> card_totals(bool all);
  Status allocate();
  void grow_characters();
  void take_told();
  std::unique_lock<std::mutex> lock_told();
  Result<EncoderParameters> copy_encoder(Side side);
  RbsgIndex index_now() const;
  std::vector<Named> states_now();
  void encode(int32_t member);
  void climb_objective(int32_t member, const RbsgBatch& batch);
  void climb_encoders(int32_t member, float scale);
  void add_slopes(int32_t member);
  float adam_rate(float lr) const;
  void step(int32_t member, float lr, bool refused);
  void step_matrices(float lr);
  void step_all(float lr, bool refused);
  void leave_slopes(float lr, const BatchStats& stats);
  template <typename OnRow>
  void for_each_row(int32_t member, const OnRow& on_row);
  double flops() const;

  RbsgOptions options_;
  mutable std::mutex mutex_;
  mutable std::mutex values_mutex_;  // taken after mutex_, by those that read values while no batch is under way
  std::shared_ptr<Turns> turns_;
  std::shared_ptr<const PackedGemm> products_;
  bool embeds_in_int8_ = false;  // an LSTM's levels, as products_ else
  std::mutex told_mutex_;        // of these, taken after the others
  std::vector<std::pair<Slot, std::string>> told_words_;
  std::u32string told_characters_;
  bool shares_characters_ = false;
  CharacterTable characters_;
  std::vector<Spelling> spellings_;  // by slot
  mutable Encoder encoders_[2];      // as they were when the card took over, until come_back()
  mutable Card card_;
  Matrix steps_;  // one value: steps so far
  RbsgPlan plan_;
  Vectors vectors_[2];
  std::vector<Lane> lanes_;
  ThreadTeam team_;
  std::shared_ptr<const PackedGemm> products_in_f32_;  // of Muon
  std::optional<Muon> muon_;
  std::unique_ptr<SharedSlopes> shared_;  // nullptr: batches step by themselves
};

}  // namespace streamvec
