// How many words a second does one core map to slots, and does the memory stay where it is when words come and go?
// Run: bench_vocabulary [--tokens 50e6] [--types 1e6] [--slots 100e3] [--half-life 0] [--exponent 1.0]
//      bench_vocabulary --text FILE [--slots 100e3] [--half-life 0]
// Words of a Zipf law over `types` spellings (letters, 3 to 14 of them), or the words of FILE again and again, are
// mapped in calls of 10,000 as training does. A line for each tenth of the tokens: 10^6 words per second of the
// thread's processor time within map() alone, the share of words without a slot, words that left per 1,000, and the
// bytes held.
// --half-life is in tokens; 0: none. --slots 0 and no half-life: plain counting.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/memory.h"
#include "streamvec/core/random.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/sampling.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace {

using streamvec::AliasTable;
using streamvec::Random;
using streamvec::Slot;
using streamvec::StreamVocabulary;

constexpr size_t kCallWords = 10'000;

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Text {
 public:
  virtual ~Text() = default;
  // Fills `words` with the next `count` words, views that hold until the next call.
  virtual void next(size_t count, std::vector<std::string_view>& words) = 0;
};

class ZipfText final : public Text {
 public:
  ZipfText(int64_t types, double exponent) : draws_(weights(types, exponent)), random_(1) {}

  void next(size_t count, std::vector<std::string_view>& words) override {
    bytes_.clear();
    ends_.clear();
    for (size_t i = 0; i < count; ++i) {
      append_word(static_cast<uint64_t>(draws_.sample(random_)));
      ends_.push_back(bytes_.size());
      bytes_ += ' ';
    }
    words.clear();
    size_t begin = 0;
    for (const size_t end : ends_) {
      words.push_back(std::string_view(bytes_).substr(begin, end - begin));
      begin = end + 1;
    }
  }

 private:
  static std::vector<double> weights(int64_t types, double exponent) {
    std::vector<double> all(static_cast<size_t>(types));
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::pow(static_cast<double>(i + 1), -exponent);
    return all;
  }
  // The rank's own letters, then some that follow from it, more for rare words: no two ranks have the same.
  void append_word(uint64_t rank) {
    uint64_t rest = rank;
    do bytes_ += static_cast<char>('a' + rest % 26);
    while ((rest /= 26) > 0);
    bytes_ += static_cast<char>('A' + rank % 7);
    uint64_t noise = streamvec::mix(rank);
    const auto more = noise % (2 + static_cast<uint64_t>(std::log2(static_cast<double>(rank + 2))) / 2);
    for (uint64_t i = 0; i <= more; ++i, noise >>= 5) bytes_ += static_cast<char>('a' + (noise & 15));
  }

  AliasTable draws_;
  Random random_;
  std::string bytes_;
  std::vector<size_t> ends_;
};

class FileText final : public Text {
 public:
  explicit FileText(std::string text) : text_(std::move(text)) { streamvec::Tokenizer().tokenize(text_, tokens_); }
  size_t size() const { return tokens_.words.size(); }
  void next(size_t count, std::vector<std::string_view>& words) override {
    words.clear();
    for (size_t i = 0; i < count; ++i, ++at_) words.push_back(tokens_.words[at_ % tokens_.words.size()]);
  }

 private:
  std::string text_;
  streamvec::Tokens tokens_;
  size_t at_ = 0;
};

void measure(Text& text, int64_t tokens_max, StreamVocabulary& vocabulary) {
  std::vector<std::string_view> words;
  std::vector<Slot> slots(kCallWords), admitted;
  StreamVocabulary::Statistics before;
  double seconds = 0;
  int64_t report_at = tokens_max / 10;
  std::printf("%14s %12s %10s %12s %10s %14s %12s\n", "tokens", "M words/s", "outside %", "left/1000", "words",
              "bytes held", "resident MB");
  while (before.tokens < tokens_max) {
    text.next(kCallWords, words);
    const double begin = thread_seconds();
    vocabulary.map(words, static_cast<double>(vocabulary.statistics().tokens), slots, admitted);
    seconds += thread_seconds() - begin;
    const StreamVocabulary::Statistics now = vocabulary.statistics();
    if (now.tokens < report_at) continue;
    const auto tokens = static_cast<double>(now.tokens - before.tokens);
    std::printf("%14lld %12.1f %10.1f %12.2f %10d %14lld %12.1f\n", static_cast<long long>(now.tokens),
                tokens / seconds / 1e6, 100 * static_cast<double>(now.outside - before.outside) / tokens,
                1000 * static_cast<double>(now.evicted - before.evicted) / tokens, vocabulary.size(),
                static_cast<long long>(vocabulary.memory_bytes()),
                static_cast<double>(streamvec::resident_memory()) / 1e6);
    std::fflush(stdout);
    before = now;
    report_at += tokens_max / 10;
    seconds = 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, double> settings = {
      {"--tokens", 50e6}, {"--types", 1e6}, {"--slots", 100e3}, {"--half-life", 0}, {"--exponent", 1.0}};
  std::string path;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && std::strcmp(argv[i], "--text") == 0) {
      path = argv[i + 1];
    } else if (i + 1 < argc && settings.count(argv[i]) > 0) {
      settings[argv[i]] = std::atof(argv[i + 1]);
    } else {
      std::fprintf(stderr,
                   "usage: bench_vocabulary [--text FILE] [--tokens N] [--types N] [--slots N] [--half-life N] "
                   "[--exponent X]\n");
      return 2;
    }
  }
  StreamVocabulary::Options options;
  options.vocab_max = static_cast<int64_t>(settings["--slots"]);
  if (settings["--half-life"] > 0) options.half_life = settings["--half-life"];
  StreamVocabulary vocabulary(options);
  const auto tokens = static_cast<int64_t>(settings["--tokens"]);
  if (path.empty()) {
    ZipfText text(static_cast<int64_t>(settings["--types"]), settings["--exponent"]);
    measure(text, tokens, vocabulary);
    return 0;
  }
  std::ifstream file(path, std::ios::binary);
  FileText text(std::string{std::istreambuf_iterator<char>(file), {}});
  if (text.size() == 0) {
    std::fprintf(stderr, "%s is not there, not readable or without words\n", path.c_str());
    return 1;
  }
  measure(text, tokens, vocabulary);
  return 0;
}
