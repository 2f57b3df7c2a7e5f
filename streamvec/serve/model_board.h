// The newest model, made ready on a thread of its own and put in the last one's place. Whoever holds the last one goes
// on with it; nobody waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "streamvec/model/snapshot.h"
#include "streamvec/serve/served_model.h"
#include "streamvec/serve/vocabulary_map.h"

namespace streamvec {

// Thread-safe.
class ModelBoard {
 public:
  struct Options {
    VocabularyMap::Options map;
    // Models with more words are searched by an index, as soon as it is built; until then, and where the next model
    // comes before that, exactly.
    int64_t exact_words_max = 1'000'000;
    HnswIndex::Options index;
    // Called on the board's thread when a model, or the picture of one, is there.
    std::function<void(const ServedModel&)> on_model = {};
    std::function<void(const MapFrame&)> on_map = {};
  };
  explicit ModelBoard(Options options);
  ~ModelBoard();

  // Returns at once. Of several that come while one is made ready only the last counts.
  void publish(std::shared_ptr<const Snapshot> snapshot);
  // Waits until everything published is served.
  void await_served();

  std::shared_ptr<const ServedModel> current() const;  // nullptr before the first
  std::shared_ptr<const MapFrame> map() const;         // likewise
  // Why the newest model is not served: the last snapshot could not be, or what set_trouble() was told; "" when it is.
  std::string trouble() const;
  // Why snapshots do not come; "" when they do.
  void set_trouble(const std::string& text);

 private:
  void run();
  void serve(std::shared_ptr<const Snapshot> snapshot);
  void build_index(const std::shared_ptr<const ServedModel>& model);

  const Options options_;
  VocabularyMap mapper_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::shared_ptr<const Snapshot> next_;
  std::shared_ptr<const ServedModel> current_;
  std::shared_ptr<const MapFrame> map_;
  std::string trouble_, outer_trouble_;
  bool busy_ = false, stopping_ = false;
  std::atomic<bool> leave_index_{false};  // something newer is there, or all is to stop
  std::thread thread_;
};

}  // namespace streamvec
