// vocab.tsv (vocab/vocab_file.h): every word is found in its slot, and what was read is written and read back equal,
// from memory and from a stream alike.
#include "streamvec/vocab/vocab_file.h"

#include <sstream>

#include "fuzz/fuzz.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {.seeds = {"#word\tcount\nthe\t10\nwater\t3\n", "#word\tcount\tspellings\nrun\t7\truns running\na\\tb\t1\t\n",
                    "#word\tlater\tcount\nx\t?\t9223372036854775807\ny\t?\t0\n", "#word\tcount\n"},
          .words = {"#word\tcount\tspellings\n", "\\n", "\\s", "\\0", "\\\\", "\t", "9223372036854775807",
                    "9223372036854775808", "-1"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Vocabulary> vocabulary = parse_vocabulary(text, "vocab.tsv");
  std::istringstream in{std::string(text)};
  STREAMVEC_CHECK_EQ(read_vocabulary(in, "vocab.tsv").ok(), vocabulary.ok());
  if (!vocabulary.ok()) {
    STREAMVEC_CHECK(vocabulary.status().code() == Code::kDataLoss);
    return 0;
  }
  for (Slot slot = 0; slot < vocabulary->size(); ++slot) {
    STREAMVEC_CHECK_EQ(vocabulary->find(vocabulary->word(slot)), slot);
    STREAMVEC_CHECK(vocabulary->count(slot) >= 0);
  }
  STREAMVEC_CHECK(vocabulary->tokens() >= 0);
  const std::string written = format_vocabulary(*vocabulary);
  const Result<Vocabulary> again = parse_vocabulary(written, "vocab.tsv");
  STREAMVEC_CHECK(again.ok() && format_vocabulary(*again) == written);
  return 0;
}
