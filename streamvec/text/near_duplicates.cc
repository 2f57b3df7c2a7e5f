#include "streamvec/text/near_duplicates.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr size_t kShingle = 4;
constexpr uint64_t kNoHash = std::numeric_limits<uint64_t>::max();
constexpr std::string_view kMagic = "svdedupe";
constexpr uint32_t kVersion = 1;

struct Header {
  uint32_t version, bins;
  uint64_t seed;
  int64_t documents, equal, near;
  uint64_t equals_count, signatures_count;
};
static_assert(sizeof(Header) == 56);

Status damaged(size_t offset, std::string_view what) {
  return error(Code::kDataLoss, "near-duplicate state, byte ", offset, ": ", what);
}

}  // namespace

Result<NearDuplicates> NearDuplicates::create(const Options& options) {
  constexpr int64_t kWindowMax = int64_t{1} << 30;
  if (options.window < 1 || options.window > kWindowMax || options.window_equal < 1 ||
      options.window_equal > kWindowMax)
    return error(Code::kInvalidArgument, "near-duplicates: windows of ", options.window, " and ", options.window_equal,
                 " documents; they must be from 1 to 2^30");
  if (!(options.similarity_min > 0 && options.similarity_min <= 1))
    return error(Code::kInvalidArgument, "near-duplicates: similarity ", options.similarity_min,
                 "; it must be above 0 and at most 1");
  return NearDuplicates(options);
}

NearDuplicates::NearDuplicates(const Options& options)
    : options_(options),
      remembered_(std::bit_ceil(static_cast<size_t>(options.window))),
      newest_(kBands * kBuckets, std::numeric_limits<uint32_t>::max()),
      equals_(static_cast<size_t>(options.window_equal)) {
  equal_to_.reserve(equals_.size());
}

bool NearDuplicates::seen_before(std::span<const std::string_view> words) {
  ++statistics_.documents;
  if (words.empty() || static_cast<int64_t>(words.size()) < options_.words_min) return false;
  const uint64_t hash = hash_words(words);
  if (equal_to_.contains(hash)) {
    ++statistics_.equal;
    return true;
  }
  const Signature signature = sign();
  if (near(signature)) {
    ++statistics_.near;
    return true;
  }
  remember(signature);
  remember_equal(hash);
  return false;
}

// Fills hashes_ and returns the hash of all.
uint64_t NearDuplicates::hash_words(std::span<const std::string_view> words) {
  hashes_.clear();
  for (const std::string_view word : words)
    hashes_.push_back(XXH3_64bits_withSeed(word.data(), word.size(), options_.seed));
  return XXH3_64bits_withSeed(hashes_.data(), hashes_.size() * sizeof(uint64_t), options_.seed);
}

// Of hashes_. A bin holds the least hash that falls into it; of that, 16 bits are kept.
NearDuplicates::Signature NearDuplicates::sign() const {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // odd: no bits are lost in the polynomial
  constexpr int kBinBits = std::bit_width(kBins - 1);
  std::array<uint64_t, kBins> least;
  least.fill(kNoHash);
  const size_t length = std::min(kShingle, hashes_.size());
  for (size_t i = 0; i + length <= hashes_.size(); ++i) {
    uint64_t shingle = 0;
    for (size_t j = i; j < i + length; ++j) shingle = shingle * kStep + hashes_[j];
    const uint64_t hash = mix(shingle);
    uint64_t& bin = least[hash >> (64 - kBinBits)];
    bin = std::min(bin, hash << kBinBits >> kBinBits);
  }
  Signature signature;
  for (size_t i = 0; i < kBins; ++i) {
    size_t from = i;
    for (uint64_t attempt = 1; least[from] == kNoHash; ++attempt) from = mix(i, attempt) % kBins;
    signature[i] = static_cast<uint16_t>(least[from]);
  }
  return signature;
}

bool NearDuplicates::is_remembered(uint32_t number) const {
  return next_ - number - 1 < count_;
}

size_t NearDuplicates::bucket(size_t band, const Signature& signature) const {
  constexpr size_t kRows = kBins / kBands;
  uint64_t rows = 0;
  static_assert(sizeof(rows) == kRows * sizeof(signature[0]));
  std::memcpy(&rows, &signature[band * kRows], sizeof(rows));
  return band * kBuckets + mix(options_.seed, rows) % kBuckets;
}

bool NearDuplicates::near(const Signature& signature) const {
  const auto wanted = options_.similarity_min * kBins;
  for (size_t band = 0; band < kBands; ++band) {
    uint32_t number = newest_[bucket(band, signature)];
    for (int looked_at = 0; looked_at < kLookedAtMax && is_remembered(number); ++looked_at) {
      const Remembered& other = remembered_[number & (remembered_.size() - 1)];
      int common = 0;
      for (size_t i = 0; i < kBins; ++i) common += signature[i] == other.signature[i];
      if (common >= wanted) return true;
      number = other.previous[band];
    }
  }
  return false;
}

void NearDuplicates::remember(const Signature& signature) {
  Remembered& place = remembered_[next_ & (remembered_.size() - 1)];
  place.signature = signature;
  for (size_t band = 0; band < kBands; ++band)
    place.previous[band] = std::exchange(newest_[bucket(band, signature)], next_);
  ++next_;
  count_ = static_cast<uint32_t>(std::min<int64_t>(int64_t{count_} + 1, options_.window));
}

void NearDuplicates::remember_equal(uint64_t hash) {
  uint64_t& place = equals_[equals_next_];
  if (equal_to_.size() == equals_.size()) equal_to_.erase(place);
  place = hash;
  equal_to_.insert(hash);
  equals_next_ = (equals_next_ + 1) % equals_.size();
}

std::string NearDuplicates::save() const {
  const Header header{.version = kVersion,
                      .bins = kBins,
                      .seed = options_.seed,
                      .documents = statistics_.documents,
                      .equal = statistics_.equal,
                      .near = statistics_.near,
                      .equals_count = equal_to_.size(),
                      .signatures_count = count_};
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  const size_t oldest = equal_to_.size() < equals_.size() ? 0 : equals_next_;
  for (size_t i = 0; i < equal_to_.size(); ++i)
    bytes.append(reinterpret_cast<const char*>(&equals_[(oldest + i) % equals_.size()]), sizeof(uint64_t));
  for (uint32_t number = next_ - count_; number != next_; ++number)
    bytes.append(reinterpret_cast<const char*>(&remembered_[number & (remembered_.size() - 1)].signature),
                 sizeof(Signature));
  return bytes;
}

Result<NearDuplicates> NearDuplicates::restore(const Options& options, std::string_view bytes) {
  Header header;
  constexpr size_t kStart = kMagic.size() + sizeof(header);
  if (bytes.size() < kStart) return damaged(bytes.size(), "cut short");
  if (!bytes.starts_with(kMagic)) return damaged(0, "this is no near-duplicate state");
  std::memcpy(&header, bytes.data() + kMagic.size(), sizeof(header));
  if (header.version != kVersion || header.bins != kBins) return damaged(kMagic.size(), "another version");
  if (header.documents < 0 || header.equal < 0 || header.near < 0) return damaged(kMagic.size(), "impossible counters");
  const size_t left = bytes.size() - kStart;
  if (header.equals_count > left / sizeof(uint64_t) ||
      header.signatures_count > (left - header.equals_count * sizeof(uint64_t)) / sizeof(Signature))
    return damaged(bytes.size(), "cut short");
  const size_t size = header.equals_count * sizeof(uint64_t) + header.signatures_count * sizeof(Signature);
  if (size != left) return damaged(kStart + size, "bytes too many");

  Options seeded = options;
  seeded.seed = header.seed;
  STREAMVEC_ASSIGN_OR_RETURN(NearDuplicates restored, create(seeded));
  restored.statistics_ = {header.documents, header.equal, header.near};
  const char* at = bytes.data() + kStart;
  for (uint64_t i = 0, hash; i < header.equals_count; ++i, at += sizeof(hash)) {
    std::memcpy(&hash, at, sizeof(hash));
    if (!restored.equal_to_.contains(hash)) restored.remember_equal(hash);
  }
  Signature signature;
  for (uint64_t i = 0; i < header.signatures_count; ++i, at += sizeof(signature)) {
    std::memcpy(&signature, at, sizeof(signature));
    restored.remember(signature);
  }
  return restored;
}

}  // namespace streamvec
