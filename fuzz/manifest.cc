// A checkpoint's state.json (train/checkpoint_manifest.h, train/run_state.h): as it comes, and with the sum put right,
// so that what is behind the sum is met too. What decodes is encoded and decoded to the same.
#include "fuzz/fuzz.h"
#include "streamvec/core/durable_file.h"
#include "streamvec/train/checkpoint_manifest.h"
#include "streamvec/train/run_state.h"

namespace streamvec {
namespace {

constexpr std::string_view kSumBefore = ",\n  \"xxh3\": \"", kSumAfter = "\"\n}\n";

CheckpointManifest example() {
  CheckpointManifest manifest;
  manifest.step = 12;
  manifest.model = "sgns";
  manifest.files["vocab.tsv"] = {.bytes = 90, .checksum = 7, .parts = {}};
  manifest.files["model.safetensors"] = {.bytes = 64, .checksum = 8, .parts = {{"", 0, 32, 9}, {"input", 32, 32, 10}}};
  RunState run;
  run.step = 12;
  run.tokens = 99;
  run.finished_ahead = {{3, 5}};
  manifest.state = {{"run", to_json(run)}, {"dim", 4}};
  return manifest;
}

void check(std::string_view text) {
  const Result<CheckpointManifest> manifest = CheckpointManifest::decode(text, "state.json");
  if (!manifest.ok()) return;
  const std::string encoded = manifest->encode();
  const Result<CheckpointManifest> again = CheckpointManifest::decode(encoded, "state.json");
  STREAMVEC_CHECK(again.ok());
  STREAMVEC_CHECK(again->encode() == encoded);
  STREAMVEC_CHECK(manifest->step >= 0);
  for (const auto& [name, file] : manifest->files) {
    STREAMVEC_CHECK(file.bytes >= 0);
    for (const FilePart& part : file.parts) STREAMVEC_CHECK(part.bytes >= 0 && part.offset >= 0);
  }
  const nlohmann::json run = manifest->state.is_object() ? manifest->state.value("run", nlohmann::json()) : nullptr;
  (void)run_state_from_json(run, {{"sources", "cursor"}});
}

}  // namespace

FuzzStart fuzz_start() {
  const std::string text = example().encode();
  return {.seeds = {text, text.substr(0, text.size() - 16 - kSumAfter.size() - kSumBefore.size())},
          .words = {"\"step\": ", "\"files\": {", "\"parts\": [", "\"bytes\": ", "\"state\": ", "9223372036854775807",
                    "18446744073709551615", "1e300", "null", "\"version\": 2"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  const std::string summed = text + std::string(kSumBefore);
  check(summed + Checksum::of(summed) + std::string(kSumAfter));
  return 0;
}
