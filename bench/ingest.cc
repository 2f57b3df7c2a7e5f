// How many MB/s of a source does one core bring into replay: read, tokenise, count, cut into chunks, insert? No
// training.
// Run: bench_ingest SOURCE...   as for training: FILE, jsonl:FILE?text=/text ... (the goal is 100 MB/s of both)
//      bench_ingest             100 MB of made-up text of 100,000 words (Zipf), then the same as JSON lines
// Each source is read to its end 5 times after a first that warms the file cache, every time into a new vocabulary
// (min-count 3, 100,000 slots) and a new replay memory. The figures are the median and the range of 10^6 bytes of file
// per second of processor time of all threads, so that a busy machine does not count.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/ingest/intake.h"
#include "streamvec/ingest/open.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytes = 100'000'000;
constexpr int kPasses = 5;

struct Pass {
  double seconds = 0;  // of processor time
  int64_t bytes = 0, documents = 0, tokens = 0;
};

ReplayOptions replay_options() {
  ReplayOptions options;
  options.limiter.inserts_ahead_max = int64_t{1} << 40;  // nobody samples
  options.in_order_share = 0;                            // chunks leave unseen
  return options;
}

Result<Pass> read_once(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(auto sources, open_each({name}));
  const Source& source = *sources.front();
  StreamVocabulary::Options words;
  words.min_count = 3;
  words.vocab_max = 100'000;
  StreamVocabulary vocabulary(words);
  SamplingTablesBuffer tables({});
  STREAMVEC_ASSIGN_OR_RETURN(const std::unique_ptr<ReplayTable> replay, ReplayTable::create(replay_options()));
  STREAMVEC_ASSIGN_OR_RETURN(DocumentFilter filter, DocumentFilter::create({}));
  Intake intake(std::move(sources), std::move(filter), {}, {vocabulary, tables, *replay, [](std::span<const Slot>) {}});
  Pass pass;
  const std::clock_t begin = std::clock();
  STREAMVEC_RETURN_IF_ERROR(intake.start());
  while (!intake.over()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  intake.stop();
  pass.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  STREAMVEC_RETURN_IF_ERROR(intake.status());
  pass.bytes = source.bytes_read();
  pass.documents = intake.totals().documents;
  pass.tokens = intake.totals().tokens;
  return pass;
}

Status measure(const std::string& name) {
  std::vector<double> speeds;
  Pass pass;
  for (int i = 0; i <= kPasses; ++i) {
    STREAMVEC_ASSIGN_OR_RETURN(pass, read_once(name));
    if (i > 0) speeds.push_back(static_cast<double>(pass.bytes) / 1e6 / pass.seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  std::printf("%-40s %7.1f MB %9lld documents %10lld tokens %8.1f MB/s (%.1f to %.1f)\n", name.c_str(),
              static_cast<double>(pass.bytes) / 1e6, static_cast<long long>(pass.documents),
              static_cast<long long>(pass.tokens), speeds[kPasses / 2], speeds.front(), speeds.back());
  return {};
}

// A sentence of about 12 words, frequent ones short.
std::string sentence(Random& random) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    auto rank = static_cast<uint32_t>(std::exp(11.5 * static_cast<double>(random.uniform())));
    for (; rank > 0; rank /= 4) text += "etao"[rank % 4];  // about as long as English words
    text += ' ';
  }
  text.back() = '.';
  return text;
}

void write_texts(const std::string& plain, const std::string& json) {
  std::ofstream plain_file(plain, std::ios::binary), json_file(json, std::ios::binary);
  Random random(1);
  for (size_t i = 0, size = 0; size < kFileBytes; ++i) {
    std::string paragraph;
    for (int k = 0; k < 8; ++k) paragraph += sentence(random) + " ";
    plain_file << paragraph << '\n';
    json_file << "{\"id\":" << i << ",\"lang\":\"en\",\"created_at\":\"2024-05-01T12:00:00Z\",\"text\":\"" << paragraph
              << "\"}\n";
    size += paragraph.size() + 1;
  }
}

Status measure_made_up_text() {
  const fs::path folder = fs::temp_directory_path() / ("bench_ingest-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  write_texts(folder / "made-up.txt", folder / "made-up.jsonl");
  Status status = measure(folder / "made-up.txt");
  if (status.ok()) status = measure("jsonl:" + (folder / "made-up.jsonl").string() + "?text=/text&id=/id");
  fs::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace streamvec

int main(int count, char** values) {
  streamvec::Status status;
  if (count == 1) status = streamvec::measure_made_up_text();
  for (int i = 1; i < count && status.ok(); ++i) status = streamvec::measure(values[i]);
  if (!status.ok()) std::fprintf(stderr, "bench_ingest: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
