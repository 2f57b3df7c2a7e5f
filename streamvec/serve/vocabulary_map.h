// The vocabulary as points in the plane: words that are near each other in the model come near each other in the
// picture, and a word that moves is seen to move.
//
// The first frame begins from the two directions in which the vectors spread most (PCA). Then each word is drawn to its
// nearest neighbours and pushed off from words drawn at random, as UMAP does (McInnes, Healy, Melville 2018; same
// curve, fewer rounds). Each further frame goes on from the last one's places, and is turned, mirrored and scaled onto
// it by Procrustes over the words in common, so that what stays the same stays where it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "streamvec/core/status.h"
#include "streamvec/serve/served_model.h"

namespace streamvec {

struct MapPoint {
  std::string word;
  int64_t count = 0;
  float x = 0, y = 0;  // within about -1 .. 1
  int32_t group = 0;   // of neighbours, for colours: 0 .. kMapGroups - 1
};
constexpr int32_t kMapGroups = 12;

// Immutable.
struct MapFrame {
  int64_t model_number = 0, step = 0;
  std::vector<MapPoint> points;  // most frequent first
};

// One thread at a time.
class VocabularyMap {
 public:
  struct Options {
    int64_t words_max = 2'000;   // shown: the most frequent; time grows with its square
    int32_t neighbours = 12;     // that a word is drawn to; more: coarser shapes
    int32_t rounds_first = 200;  // of the first frame ...
    int32_t rounds_next = 20;    // ... and of further ones; more: follows faster, moves more
    int64_t skipped = 50;        // most frequent words left out where there are enough: "the" lies near everything
    uint64_t seed = 1;
  };
  VocabularyMap() : VocabularyMap(Options()) {}
  explicit VocabularyMap(const Options& options) : options_(options) {}

  // kResourceExhausted: no memory for the neighbours.
  Result<std::shared_ptr<const MapFrame>> update(const ServedModel& model);

 private:
  struct Place {
    float x = 0, y = 0;
  };
  const Options options_;
  std::unordered_map<std::string, Place> last_;
  std::vector<float> centres_;  // of the groups, kMapGroups x dim
  int64_t frames_ = 0;
};

}  // namespace streamvec
