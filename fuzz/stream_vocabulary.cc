// The saved vocabulary of a stream with its sketch, and of its sampling tables (vocab/stream_vocabulary.h,
// sampling_buffer.h), with the sum put right: what restores saves to the same bytes, and two of it go on alike.
#include "streamvec/vocab/stream_vocabulary.h"

#include <array>

#include "fuzz/fuzz.h"
#include "streamvec/core/durable_file.h"
#include "streamvec/vocab/sampling_buffer.h"

namespace streamvec {
namespace {

constexpr std::string_view kWords[] = {"the", "water", "rose", "the", "night", "the", "water", "a", "rain", "over"};

StreamVocabulary::Options options_of(bool plain) {
  StreamVocabulary::Options options{.min_count = 2};
  if (!plain) options.vocab_max = 4, options.half_life = 50, options.sketch_bytes = 1024;
  return options;
}

void go_on(StreamVocabulary& vocabulary) {
  std::array<Slot, std::size(kWords)> slots;
  std::vector<Slot> admitted;
  vocabulary.map(kWords, vocabulary.now() + 10, slots, admitted);
  for (const Slot slot : slots) STREAMVEC_CHECK(slot == kNoSlot || (slot >= 0 && slot < vocabulary.size()));
}

std::string with_sum(std::string_view content) {
  Checksum sum;
  sum.update(content);
  const uint64_t value = sum.value();
  return std::string(content).append(reinterpret_cast<const char*>(&value), sizeof value);
}

void check_vocabulary(std::string_view bytes) {
  for (const bool plain : {false, true}) {
    Result<StreamVocabulary> vocabulary = StreamVocabulary::restore(options_of(plain), bytes);
    if (!vocabulary.ok()) continue;
    const std::string saved = vocabulary->save();
    Result<StreamVocabulary> again = StreamVocabulary::restore(options_of(plain), saved);
    STREAMVEC_CHECK(again.ok() && again->save() == saved);
    for (Slot slot = 0; slot < vocabulary->size(); ++slot)
      STREAMVEC_CHECK_EQ(vocabulary->find(vocabulary->word(slot)), slot);
    go_on(*vocabulary);
    go_on(*again);
    STREAMVEC_CHECK(vocabulary->save() == again->save());
  }
}

void check_tables(std::string_view bytes) {
  SamplingTablesBuffer buffer({}), again({});
  if (!buffer.restore(bytes).ok()) return;
  const std::string saved = buffer.save();
  STREAMVEC_CHECK(again.restore(saved).ok() && again.save() == saved);
}

}  // namespace

FuzzStart fuzz_start() {
  FuzzStart start;
  for (const bool plain : {false, true}) {
    StreamVocabulary vocabulary(options_of(plain));
    SamplingTablesBuffer buffer({});
    for (int times = 0; times < 3; ++times) {
      const std::string saved = vocabulary.save();
      start.seeds.push_back(saved.substr(0, saved.size() - sizeof(uint64_t)));
      go_on(vocabulary);
    }
    if (buffer.stage(vocabulary)) buffer.build();
    start.seeds.push_back(buffer.save());
  }
  return start;
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_vocabulary(bytes);
  check_vocabulary(with_sum(bytes));
  check_tables(bytes);
  return 0;
}
