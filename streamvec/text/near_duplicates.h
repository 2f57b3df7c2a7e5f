// Has this text, or one nearly like it, come by lately? For streams in which the same story arrives many times.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// Documents are compared by the share of their 4-word shingles that they have in common (Jaccard), estimated by MinHash
// with one permutation (64 bins, empty ones filled by optimal densification); candidates come from 16 bands of 4. Two
// that share 80% are compared with probability 0.9998, two that share 30% with 0.12, and the estimate errs by 0.05.
// SimHash, the other usual way, was not taken: at the distance of 3 bits of 64 that it can look up it finds texts that
// differ in about one word in 400, while a story comes back with another headline, dateline and last paragraph.
// Equal documents are recognised by a hash of all their words for longer.
//
// Memory is fixed: about 200 bytes a document of the window, 40 a document of the window of equals, and 4 MB. Time is
// linear in the words and does not grow with the windows. A document that was seen before is not remembered again.
// Not thread-safe. One order of calls gives one result, across save() and restore() too.
class NearDuplicates {
 public:
  struct Options {
    int64_t window = 65'536;         // new documents remembered for their likes
    int64_t window_equal = 262'144;  // new documents remembered for their equals
    double similarity_min = 0.8;     // smaller: drops texts that have less in common, below 0.6 with many misses
    int64_t words_min = 16;          // shorter texts are always new: people do say good morning every day
    uint64_t seed = 1;               // of all hashing; should be unknown to whoever writes the text
  };
  struct Statistics {
    int64_t documents = 0, equal = 0, near = 0;  // equal ones are not among the near
  };

  // kInvalidArgument for options out of range.
  static Result<NearDuplicates> create(const Options& options);

  // True when a document like this is remembered; else it is from now on. Words as the tokeniser gives them.
  bool seen_before(std::span<const std::string_view> words);

  const Statistics& statistics() const { return statistics_; }

  // All that is remembered, as bytes. docs/FORMATS.md has the layout.
  std::string save() const;
  // With smaller windows the latest are kept; the seed is the saved one. kDataLoss, with the offset, for bytes that are
  // cut short, damaged or too many; memory is taken only for what they hold.
  static Result<NearDuplicates> restore(const Options& options, std::string_view bytes);

 private:
  static constexpr size_t kBins = 64, kBands = 16, kBuckets = 1 << 16;
  static constexpr int kLookedAtMax = 64;  // documents in a bucket, so that time is bounded whatever the text
  using Signature = std::array<uint16_t, kBins>;
  struct Remembered {
    Signature signature;
    std::array<uint32_t, kBands> previous;  // number of the document before it in the bucket of each band
  };

  explicit NearDuplicates(const Options& options);
  uint64_t hash_words(std::span<const std::string_view> words);
  Signature sign() const;
  bool near(const Signature& signature) const;
  bool is_remembered(uint32_t number) const;
  size_t bucket(size_t band, const Signature& signature) const;
  void remember(const Signature& signature);
  void remember_equal(uint64_t hash);

  Options options_;
  Statistics statistics_;
  std::vector<uint64_t> hashes_;        // of the words of the document under way
  std::vector<Remembered> remembered_;  // a ring: document n at n modulo its size, a power of two
  uint32_t next_ = 0;                   // the number of the next document; starts again after 2^32, which does no harm
  uint32_t count_ = 0;                  // documents remembered: those before next_
  std::vector<uint32_t> newest_;        // by band and bucket
  std::vector<uint64_t> equals_;        // a ring of hashes
  size_t equals_next_ = 0;
  std::unordered_set<uint64_t> equal_to_;  // the same hashes
};

}  // namespace streamvec
