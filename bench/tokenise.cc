// How many MB/s of text does one core tokenise?
// Run: bench_tokenise FILE...   (plain text, read into memory first; one line of results per file)
// Each file is tokenised in pieces of 64 KiB, cut at white space as sources do, at least 5 times and for a second; the
// figures are the median and the range of the passes, in 10^6 bytes per second of processor time (so that a busy
// machine does not count), for both ways to split.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/text/tokenizer.h"

namespace {

using streamvec::Tokenizer;
using streamvec::TokenizerOptions;
using streamvec::Tokens;

constexpr size_t kPieceBytes = size_t{1} << 16;

std::vector<std::string_view> cut(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    size_t end = std::min(kPieceBytes, text.size());
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

double seconds_of_pass(Tokenizer& tokenizer, const std::vector<std::string_view>& pieces, int64_t& words) {
  Tokens tokens;
  words = 0;
  const std::clock_t start = std::clock();
  for (const std::string_view piece : pieces) {
    tokenizer.tokenize(piece, tokens);
    words += static_cast<int64_t>(tokens.words.size());
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void measure(const char* path, std::string_view text, const char* label, const TokenizerOptions& options) {
  const auto pieces = cut(text);
  Tokenizer tokenizer(options);
  int64_t words = 0;
  std::vector<double> speeds;
  double total = 0;
  while (speeds.size() < 5 || total < 1.0) {
    const double seconds = seconds_of_pass(tokenizer, pieces, words);
    total += seconds;
    speeds.push_back(static_cast<double>(text.size()) / 1e6 / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  std::printf("%-40s %-10s %7.1f MB %10lld words %8.1f MB/s (%.1f to %.1f, %zu passes)\n", path, label,
              static_cast<double>(text.size()) / 1e6, static_cast<long long>(words), speeds[speeds.size() / 2],
              speeds.front(), speeds.back(), speeds.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_tokenise FILE...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) {
      std::fprintf(stderr, "%s is not there, not readable or empty\n", argv[i]);
      return 1;
    }
    measure(argv[i], text, "words", {});
    TokenizerOptions whitespace{.split = TokenizerOptions::Split::kWhitespace, .fold_case = false, .nfkc = false};
    measure(argv[i], text, "whitespace", whitespace);
  }
  return 0;
}
