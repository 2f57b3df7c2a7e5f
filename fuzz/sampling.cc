// Saved counts of sampling tables (vocab/sampling_buffer.h): bytes that restore are saved as they were, draw words
// there are, and go on with a vocabulary of whatever size.
#include "fuzz/fuzz.h"
#include "streamvec/core/random.h"
#include "streamvec/vocab/sampling_buffer.h"

namespace streamvec {
namespace {

StreamVocabulary vocabulary_of(uint64_t words) {
  StreamVocabulary vocabulary({.min_count = 1, .vocab_max = 64, .sketch_bytes = 1 << 12});
  for (uint64_t i = 0; i < 2 * words; ++i) {
    const std::string word = "w" + std::to_string(mix(i) % words);
    std::vector<std::string_view> text = {word};
    std::vector<Slot> slots(1), admitted;
    vocabulary.map(text, static_cast<double>(i), slots, admitted);
  }
  return vocabulary;
}

// Tables for it, built when they are due.
void show(SamplingTablesBuffer& buffer, const StreamVocabulary& vocabulary) {
  if (buffer.stage(vocabulary)) buffer.build();
}

}  // namespace

FuzzStart fuzz_start() {
  FuzzStart start;
  SamplingTablesBuffer buffer({});
  for (const uint64_t words : {1, 5, 40}) {
    show(buffer, vocabulary_of(words));
    start.seeds.push_back(buffer.save());
  }
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SamplingTablesBuffer buffer({});
  if (const Status status = buffer.restore(bytes); !status.ok()) {
    STREAMVEC_CHECK(status.code() == Code::kDataLoss);
    STREAMVEC_CHECK(buffer.tables() == nullptr);
    return 0;
  }
  STREAMVEC_CHECK(buffer.save() == bytes);
  static const StreamVocabulary small = vocabulary_of(3), large = vocabulary_of(50);
  for (const StreamVocabulary* vocabulary : {&large, &small}) {
    show(buffer, *vocabulary);
    const auto tables = buffer.tables();
    if (tables == nullptr) continue;
    Random random(1);
    std::vector<Slot> drawn(8);
    tables->negatives.sample(random, drawn);
    for (const Slot slot : drawn) STREAMVEC_CHECK(slot >= 0);
  }
  return 0;
}
