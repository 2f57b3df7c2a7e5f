// What does it cost to watch a stream: counting for the probe, measuring it, and looking for drift?
// Run: bench_watching [DIM [WORDS]]   (default 200 and 50000; one core; generated text and vectors)
// Text is Zipf's over 50,000 words in chunks of 256 tokens. Figures are seconds of processor time, so that a busy
// machine does not count: per token given to the probe at the default share of chunks and at all of them, one
// measurement with and without the split-half reference, and one search for drift with and without halves.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "streamvec/core/random.h"
#include "streamvec/eval/drift.h"
#include "streamvec/eval/probe_sppmi.h"

namespace {

using namespace streamvec;

constexpr int32_t kTextWords = 50'000;
constexpr int kChunks = 40'000, kChunkTokens = 256, kSentence = 20;

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Vocabulary zipf_vocabulary(int32_t words) {
  Vocabulary vocabulary;
  for (int32_t i = 0; i < words; ++i) vocabulary.add("w" + std::to_string(i), 40'000'000 / (i + 10));
  return vocabulary;
}

std::vector<Chunk> make_chunks(const Vocabulary& vocabulary) {
  const AliasTable words(vocabulary, 1);
  Random random(1);
  std::vector<Chunk> chunks(kChunks);
  for (Chunk& chunk : chunks)
    for (int i = 1; i <= kChunkTokens; ++i) {
      chunk.slots.push_back(words.sample(random));
      if (i % kSentence == 0 || i == kChunkTokens) chunk.sentence_ends.push_back(i);
    }
  return chunks;
}

Snapshot random_snapshot(const Vocabulary& vocabulary, int64_t dim, uint64_t seed) {
  Snapshot snapshot;
  snapshot.vocabulary = vocabulary;
  snapshot.input = Matrix::make(vocabulary.size(), dim).value();
  Random random(seed), shared(7);
  for (int64_t i = 0; i < vocabulary.size(); ++i)
    for (int64_t j = 0; j < dim; ++j)
      snapshot.input.row(i)[j] = shared.uniform() - 0.5f + 0.3f * (random.uniform() - 0.5f);
  return snapshot;
}

ProbeCounts time_probe(int32_t chunks_every, const std::vector<Chunk>& chunks, const Vocabulary& vocabulary) {
  ProbeOptions options;
  options.chunks_every = chunks_every;
  ProbeSppmi probe(options);
  probe.follow(std::vector<double>(vocabulary.counts().begin(), vocabulary.counts().end()));
  const Subsampling subsampling(vocabulary, options.pairs.sample);
  const double start = cpu_seconds();
  double t = 0;
  for (const Chunk& chunk : chunks) probe.add(chunk, ++t, subsampling);
  const double tokens = double{kChunks} * kChunkTokens, seconds = cpu_seconds() - start;
  std::printf("probe, 1 chunk in %d: %.1f ns a token, %.1f MB\n", chunks_every, 1e9 * seconds / tokens,
              static_cast<double>(probe.memory_bytes()) / 1e6);
  return probe.counts();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t dim = argc > 1 ? std::atoll(argv[1]) : 200;
  const auto words = static_cast<int32_t>(argc > 2 ? std::atoll(argv[2]) : 50'000);
  const Vocabulary vocabulary = zipf_vocabulary(kTextWords);
  const std::vector<Chunk> chunks = make_chunks(vocabulary);
  ProbeOptions options;
  options.dim = dim;
  time_probe(options.chunks_every, chunks, vocabulary);
  const ProbeCounts counts = time_probe(1, chunks, vocabulary);
  const Snapshot text_model = random_snapshot(vocabulary, dim, 1);
  for (const bool split_half : {false, true}) {
    const double start = cpu_seconds();
    const bool ok = measure_probe(counts, text_model, options, split_half).ok();
    std::printf("measurement%s: %.2f s%s\n", split_half ? " with split half" : "", cpu_seconds() - start,
                ok ? "" : " (failed)");
  }
  const Vocabulary judged = zipf_vocabulary(words);
  std::vector<Snapshot> models;
  for (uint64_t seed = 2; seed < 8; ++seed) models.push_back(random_snapshot(judged, dim, seed));
  for (const bool halves : {false, true}) {
    StreamState then{models[0]}, now{models[1]};
    if (halves) then.half_a = &models[2], then.half_b = &models[3], now.half_a = &models[4], now.half_b = &models[5];
    const double start = cpu_seconds();
    const auto report = find_drift(then, now);
    std::printf("drift of %d words of %lld values%s: %.2f s%s\n", words, static_cast<long long>(dim),
                halves ? " with halves" : "", cpu_seconds() - start, report.ok() ? "" : " (failed)");
  }
}
