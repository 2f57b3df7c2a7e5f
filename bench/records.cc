// How many MB/s of JSON lines (and tab-separated lines) does one core turn into documents?
// Run: bench_records                 made-up records of about 300 and 3,000 bytes, 100 MB of each kind
//      bench_records NAME...         sources as for training: jsonl:FILE?text=/body, tsv:FILE?text=3,4
// Each source is read to its end in calls of 256 documents, 5 times after a first that warms the file cache. The
// figures are the median and the range of 10^6 bytes of file per second of processor time (so that a busy machine does
// not count), and the documents.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/source/record_source.h"

namespace {

namespace fs = std::filesystem;
using streamvec::Deadline;
using streamvec::Document;
using streamvec::RecordSource;
using streamvec::Source;

constexpr size_t kFileBytes = 100'000'000;

std::string words(size_t bytes, size_t seed) {
  static const char* const kWords[] = {"the",  "river",      "runs", "through", "\\\"old\\\"",
                                       "city", "caf\\u00e9", "서울", "and",     "people"};
  std::string text;
  for (size_t i = seed; text.size() < bytes; i = i * 31 + 7) text += std::string(kWords[i % 10]) + " ";
  return text;
}

void write_json(const std::string& path, size_t text_bytes) {
  std::ofstream file(path, std::ios::binary);
  for (size_t i = 0, size = 0; size < kFileBytes; ++i) {
    const std::string number = std::to_string(i);
    const std::string line = "{\"id\":\"record-" + number +
                             "\",\"created_at\":\"2024-05-01T12:30:00Z\",\"user\":{\"name\":\"u" + number +
                             "\",\"followers\":" + number + ",\"tags\":[1,2,3]},\"lang\":\"en\",\"title\":\"Record " +
                             number + "\",\"body\":\"" + words(text_bytes, i) + "\"}\n";
    file << line;
    size += line.size();
  }
}

void write_tsv(const std::string& path, size_t text_bytes) {
  std::ofstream file(path, std::ios::binary);
  for (size_t i = 0, size = 0; size < kFileBytes; ++i) {
    const std::string line = "2024-05-01\trecord-" + std::to_string(i) + "\t" + words(text_bytes, i) + "\n";
    file << line;
    size += line.size();
  }
}

// Documents read, or -1 after a message.
int64_t read_once(Source& source, double& seconds) {
  std::vector<Document> documents;
  int64_t total = 0;
  const std::clock_t start = std::clock();
  for (;;) {
    documents.clear();
    const auto count = source.read(256, Deadline::never(), documents);
    if (!count.ok()) {
      std::fprintf(stderr, "%s\n", count.status().message().c_str());
      return -1;
    }
    if (*count == 0) break;
    total += *count;
  }
  seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return total;
}

bool measure(const std::string& name) {
  auto source = RecordSource::open(name);
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", source.status().message().c_str());
    return false;
  }
  std::vector<double> speeds;
  int64_t documents = 0;
  for (int pass = 0; pass < 6; ++pass) {
    double seconds = 0;
    if (!(*source)->seek("").ok() || (documents = read_once(**source, seconds)) < 0) return false;
    if (pass > 0) speeds.push_back(static_cast<double>((*source)->bytes_total()) / 1e6 / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  std::printf("%-60s %9lld documents %8.1f MB/s (%.1f to %.1f)\n", name.c_str(), static_cast<long long>(documents),
              speeds[speeds.size() / 2], speeds.front(), speeds.back());
  return true;
}

std::vector<std::string> made_up(const fs::path& directory) {
  std::vector<std::string> names;
  for (const size_t bytes : {size_t{150}, size_t{2'850}}) {
    const std::string path = (directory / ("records-" + std::to_string(bytes))).string();
    write_json(path + ".jsonl", bytes);
    names.push_back("jsonl:" + path + ".jsonl?text=/title,/body&id=/id&time=/created_at");
    write_tsv(path + ".tsv", bytes + 100);
    names.push_back("tsv:" + path + ".tsv?text=3&id=2&time=1");
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  const fs::path directory = fs::temp_directory_path() / "streamvec-bench-records";
  if (names.empty()) {
    fs::create_directories(directory);
    names = made_up(directory);
  }
  const bool ok = std::all_of(names.begin(), names.end(), measure);
  if (argc == 1) fs::remove_all(directory);
  return ok ? 0 : 1;
}
