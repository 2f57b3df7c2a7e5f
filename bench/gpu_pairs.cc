// How long does an epoch of 2018 (3.35 M pairs, minibatches, Adam on both tables) take on the card?
//
// Run: bench_gpu_pairs [--rows 10000] [--pairs 3350000] [--negatives 10] [--dims 50,200] [--batches 1024,8192]
// [--repeat 3]
//     Pairs are drawn by Zipf's law. One line of JSON for each dim and batch: seconds of each repetition, loss a pair.
//     A first epoch that is not timed warms up. bench/gpu runs this beside PyTorch.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/cuda/device.h"
#include "streamvec/cuda/pair_adam.h"

namespace streamvec {
namespace {

struct Settings {
  int64_t rows = 10'000, pairs = 3'350'000;
  int32_t negatives = 10, repeat = 3;
  std::vector<int64_t> dims{50, 200}, batches{1024, 8192};
};

std::vector<int64_t> list_of(const std::string& text) {
  std::vector<int64_t> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) values.push_back(std::stoll(part));
  return values;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--rows")
      settings.rows = std::stoll(value);
    else if (name == "--pairs")
      settings.pairs = std::stoll(value);
    else if (name == "--negatives")
      settings.negatives = std::stoi(value);
    else if (name == "--repeat")
      settings.repeat = std::stoi(value);
    else if (name == "--dims")
      settings.dims = list_of(value);
    else if (name == "--batches")
      settings.batches = list_of(value);
    else
      std::cerr << "bench_gpu_pairs: no option is called " << name << "\n", std::exit(2);
  }
  return settings;
}

std::vector<cuda::WordPair> drawn_pairs(const Settings& settings, const std::vector<double>& counts) {
  const AliasTable words(counts);
  Random random(1);
  std::vector<cuda::WordPair> pairs(static_cast<size_t>(settings.pairs));
  for (cuda::WordPair& pair : pairs) pair = {words.sample(random), words.sample(random)};
  return pairs;
}

Status measure(const Settings& settings, int64_t dim, int64_t batch, const std::vector<cuda::WordPair>& pairs,
               const AliasTable& negatives) {
  STREAMVEC_ASSIGN_OR_RETURN(auto card, cuda::make_pair_adam({settings.rows, dim, settings.negatives, 1e-4f}));
  std::vector<float> values(static_cast<size_t>(2 * settings.rows * dim));
  Random random(2);
  for (size_t i = 0; i < values.size() / 2; ++i) values[i] = (random.uniform() - 0.5f) / static_cast<float>(dim);
  STREAMVEC_RETURN_IF_ERROR(card->put(values));
  STREAMVEC_RETURN_IF_ERROR(card->set_pairs(pairs));
  STREAMVEC_RETURN_IF_ERROR(card->set_negatives(negatives));
  std::cout << "{\"dim\": " << dim << ", \"batch\": " << batch << ", \"seconds\": [";
  double loss = 0;
  for (int32_t i = 0; i <= settings.repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    STREAMVEC_ASSIGN_OR_RETURN(loss, card->run_epoch(batch, static_cast<uint64_t>(i)));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (i > 0) std::cout << (i > 1 ? ", " : "") << seconds;
  }
  std::cout << "], \"loss\": " << loss / static_cast<double>(settings.pairs) << "}" << std::endl;
  return {};
}

Status run(const Settings& settings) {
  STREAMVEC_RETURN_IF_ERROR(cuda::find_device().status());
  std::vector<double> counts(static_cast<size_t>(settings.rows));
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = 1e7 / (2.7 + static_cast<double>(i));
  const std::vector<cuda::WordPair> pairs = drawn_pairs(settings, counts);
  const AliasTable negatives(unigram_probabilities(counts));
  for (const int64_t dim : settings.dims)
    for (const int64_t batch : settings.batches)
      STREAMVEC_RETURN_IF_ERROR(measure(settings, dim, batch, pairs, negatives));
  return {};
}

}  // namespace
}  // namespace streamvec

int main(int argc, char** argv) {
  const streamvec::Status status = streamvec::run(streamvec::parse(argc, argv));
  if (!status.ok()) std::cerr << "bench_gpu_pairs: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
