// Saved memory of documents seen (text/near_duplicates.h): bytes that restore are saved as the same state, which goes
// on without harm.
#include "streamvec/text/near_duplicates.h"

#include "fuzz/fuzz.h"
#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr NearDuplicates::Options kOptions{.window = 16, .window_equal = 32, .words_min = 4};
constexpr std::string_view kWords[] = {"the", "water", "rose", "in", "a", "night", "of", "rain", "over", "town"};

void show(NearDuplicates& seen, uint64_t documents) {
  for (uint64_t document = 0; document < documents; ++document) {
    std::vector<std::string_view> words;
    for (uint64_t i = 0; i < 24; ++i) words.push_back(kWords[mix(document, i) % std::size(kWords)]);
    seen.seen_before(words);
  }
}

}  // namespace

FuzzStart fuzz_start() {
  FuzzStart start;
  NearDuplicates seen = NearDuplicates::create(kOptions).value();
  for (const uint64_t documents : {0, 3, 40}) {
    show(seen, documents);
    start.seeds.push_back(seen.save());
  }
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Result<NearDuplicates> seen = NearDuplicates::restore(kOptions, bytes);
  if (!seen.ok()) {
    STREAMVEC_CHECK(seen.status().code() == Code::kDataLoss);
    return 0;
  }
  const std::string saved = seen->save();
  Result<NearDuplicates> again = NearDuplicates::restore(kOptions, saved);
  STREAMVEC_CHECK(again.ok() && again->save() == saved);
  show(*seen, 8);
  show(*again, 8);
  STREAMVEC_CHECK(seen->save() == again->save());
  return 0;
}
