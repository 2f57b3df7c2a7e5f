// Runs a fuzz target without libFuzzer, in any build: its seeds as they are, then inputs made of them by chance.
//
//   fuzz_NAME [--runs=N] [--seconds=S] [--seed=X] [--from=N] [FILE...]
//
// Run N of seed X is one input, always the same; a run that fails says how to have it alone. It stops after N runs or
// S seconds, whichever comes first. With FILEs those are the inputs: what libFuzzer left of a crash.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.h"
#include "streamvec/core/random.h"

// There when a sanitizer is, which ends the program without a signal.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace streamvec {
namespace {

constexpr size_t kInputBytesMax = size_t{64} << 10;

struct Settings {
  int64_t runs = 1'000'000, seconds = 10, seed = 1, from = 0;
  std::vector<std::string> files;
};

volatile std::sig_atomic_t the_run = 0;
int64_t the_seed = 0;

void tell_run() {
  std::fprintf(stderr, "the input was run %d; have it alone with --seed=%lld --from=%d --runs=1\n",
               static_cast<int>(the_run), static_cast<long long>(the_seed), static_cast<int>(the_run));
}

void on_signal(int number) {
  tell_run();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Changes that break parsers: one each.
class Mutator {
 public:
  Mutator(const FuzzStart& start, uint64_t seed) : start_(start), random_(seed) {}

  std::string next_input() {
    std::string input = any_seed();
    for (uint32_t i = 1 + random_.below(8); i > 0; --i) change(input);
    input.resize(std::min(input.size(), kInputBytesMax));
    return input;
  }

 private:
  size_t place(const std::string& input) { return random_.below(static_cast<uint32_t>(input.size() + 1)); }
  size_t length() { return 1 + random_.below(1U << random_.below(10)); }
  const std::string& any_seed() { return start_.seeds[random_.below(static_cast<uint32_t>(start_.seeds.size()))]; }

  void change(std::string& input) {
    const size_t at = place(input);
    switch (random_.below(9)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << random_.below(8));
        return;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(random_.next());
        return;
      case 2:
        input.erase(at, length());
        return;
      case 3:
        input.insert(at, std::string(input, place(input), length()));
        return;
      case 4: {
        const std::string& other = any_seed();
        input.insert(at, std::string(other, place(other), length()));
        return;
      }
      case 5:
        if (!start_.words.empty())
          input.insert(at, start_.words[random_.below(static_cast<uint32_t>(start_.words.size()))]);
        return;
      case 6:
        input.insert(at, std::string(length(), static_cast<char>(random_.next())));
        return;
      case 7:
        number(input, at);
        return;
      case 8:
        if (random_.below(4) == 0) input.resize(at);
        return;
    }
  }
  // Lengths and counts that are just too large, as text or as bytes.
  void number(std::string& input, size_t at) {
    constexpr uint64_t kNumbers[] = {
        0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
    const uint64_t value = kNumbers[random_.below(std::size(kNumbers))] - random_.below(2);
    std::string bytes = std::to_string(value);
    if (random_.below(2) == 0) bytes.assign(reinterpret_cast<const char*>(&value), size_t{1} << random_.below(4));
    input.replace(at, std::min(bytes.size(), input.size() - at), bytes);
  }

  const FuzzStart& start_;
  Random random_;
};

std::string input_of(const FuzzStart& start, int64_t seed, int64_t run) {
  if (run < static_cast<int64_t>(start.seeds.size())) return start.seeds[static_cast<size_t>(run)];
  return Mutator(start, mix(static_cast<uint64_t>(seed), static_cast<uint64_t>(run))).next_input();
}

void try_input(const std::string& input) {
  // A copy of just its size: what reads past the end is seen.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

int64_t run_all(const Settings& settings) {
  const FuzzStart start = fuzz_start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(settings.seconds);
  int64_t run = settings.from;
  for (; run < settings.from + settings.runs && std::chrono::steady_clock::now() < end; ++run) {
    the_run = static_cast<int>(run);
    try_input(input_of(start, settings.seed, run));
  }
  return run - settings.from;
}

bool take_number(std::string_view argument, std::string_view name, int64_t& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const auto [end, status] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  return status == std::errc() && end == argument.data() + argument.size() && value >= 0;
}

bool take_argument(const std::string& argument, Settings& settings) {
  if (take_number(argument, "--runs=", settings.runs) || take_number(argument, "--seconds=", settings.seconds) ||
      take_number(argument, "--seed=", settings.seed) || take_number(argument, "--from=", settings.from))
    return true;
  if (argument.starts_with("--")) return false;
  settings.files.push_back(argument);
  return true;
}

}  // namespace
}  // namespace streamvec

int main(int count, char** arguments) {
  using namespace streamvec;
  Settings settings;
  for (int i = 1; i < count; ++i) {
    if (take_argument(arguments[i], settings)) continue;
    std::fprintf(stderr, "usage: %s [--runs=N] [--seconds=S] [--seed=X] [--from=N] [FILE...]\n", arguments[0]);
    return 2;
  }
  for (const std::string& path : settings.files) {
    std::ifstream file(path, std::ios::binary);
    try_input(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  if (!settings.files.empty()) return 0;
  the_seed = settings.seed;
  for (const int number : {SIGABRT, SIGTERM}) std::signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback(tell_run);
  else
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, on_signal);
  std::printf("%lld runs\n", static_cast<long long>(run_all(settings)));
  return 0;
}
