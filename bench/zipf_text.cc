// Text without end for the benchmarks of memory: words whose frequency falls with their rank (Zipf, exponent 1), so
// many that no table of all of them would stay small. Each of WORDS words comes at least once in 10 * WORDS tokens.
// Lines have 20 words and end with a full stop. About 200 MB/s.
//   bench_zipf_text [TOKENS [WORDS]] | streamvec train - --stream --vocab-max 100000 --out DIR      (1e8 of 1e7)
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec {
namespace {

constexpr int64_t kLineWords = 20, kWalkEvery = 10;
constexpr size_t kBufferBytes = size_t{1} << 18;

// Ranks as words of letters: short ones for the frequent.
void append_word(uint64_t rank, std::string& out) {
  do {
    out.push_back(static_cast<char>('a' + rank % 26));
    rank /= 26;
  } while (rank > 0);
  out.push_back('x');  // "a" and "ax" stay two words
}

// Ranks drawn before: the draw costs more than the rest.
std::vector<uint32_t> drawn_ranks(uint64_t words) {
  std::vector<uint32_t> ranks(size_t{1} << 22);
  Random random(7);
  const double range = std::log(static_cast<double>(words) + 1);
  for (uint32_t& rank : ranks) {
    const double drawn = std::exp(range * (static_cast<double>(random.uniform()) + 0x1p-25)) - 1;
    rank = static_cast<uint32_t>(std::min(drawn, static_cast<double>(words - 1)));
  }
  return ranks;
}

bool write_all(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(1, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

int print(int64_t tokens, uint64_t words) {
  const std::vector<uint32_t> ranks = drawn_ranks(words);
  Random random(8);
  std::string buffer;
  buffer.reserve(2 * kBufferBytes);
  uint64_t walked = 0;
  size_t at = 0;
  for (int64_t token = 0; token < tokens; ++token) {
    const bool walk = token % kWalkEvery == 0;
    // Each time round another beginning, so that the text does not repeat itself.
    if (!walk && ++at >= ranks.size()) at = random.below(static_cast<uint32_t>(ranks.size() / 2));
    append_word(walk ? walked++ % words : ranks[at], buffer);
    buffer += token % kLineWords == kLineWords - 1 ? ".\n" : " ";
    if (buffer.size() < kBufferBytes) continue;
    if (!write_all(buffer)) return 1;
    buffer.clear();
  }
  return write_all(buffer) ? 0 : 1;
}

}  // namespace
}  // namespace streamvec

int main(int count, char** values) {
  const double tokens = count > 1 ? std::atof(values[1]) : 1e8, words = count > 2 ? std::atof(values[2]) : 1e7;
  if (tokens < 1 || words < 1 || words > 4e9) {
    std::fprintf(stderr, "usage: bench_zipf_text [TOKENS [WORDS]]\n");
    return 2;
  }
  return streamvec::print(static_cast<int64_t>(tokens), static_cast<uint64_t>(words));
}
