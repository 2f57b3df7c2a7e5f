// What share of this core's peak do the training kernels reach, and what would each of its limits allow?
// Run: bench_roofline [--dim 200] [--window 5] [--negatives 10] [--sample 2e-3] [--keep 0.79] [--rows 113000] [--json]
//   keep: the share of the text's words that training keeps (known to the vocabulary and not thinned out; .79 on
//   wiki100); rows: the vocabulary's size.
// Useful flops are counted: 6 * dim for each (output, input) pair that has a weight, which is every negative with every
// input and each centre with the words of its drawn window. Bytes count each row of a block read once and written once.
// Time is the thread's processor time, the median of several passes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peaks.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/kernel/scratch.h"
#include "streamvec/model/model.h"
#include "streamvec/model/window_plan.h"

namespace streamvec::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Settings {
  double dim = 200, window = 5, negatives = 10, sample = 2e-3, keep = 0.79, rows = 113'000;
  bool json = false;

  WindowOptions windows() const {
    WindowOptions options;
    options.window = static_cast<int32_t>(window);
    options.negatives = static_cast<int32_t>(negatives);
    return settled(options);
  }
};

enum class Words {
  kEven,  // each as likely as any other: the worst for caches
  kZipf,  // as in text
};

Vocabulary made_up_vocabulary(int32_t rows, Words words) {
  Vocabulary vocabulary;
  for (int32_t rank = 0; rank < rows; ++rank)
    vocabulary.add("w" + std::to_string(rank), words == Words::kEven ? 1'000 : 1 + 100'000'000 / (rank + 3));
  return vocabulary;
}

// 5,000 words in sentences of 1,000.
Chunk made_up_chunk(const AliasTable& draws, Random& random) {
  Chunk chunk;
  for (int32_t i = 1; i <= 5'000; ++i) {
    chunk.slots.push_back(draws.sample(random));
    if (i % 1'000 == 0) chunk.sentence_ends.push_back(i);
  }
  return chunk;
}

// A block as skip-gram training builds it (model/sgns.cc), kept so that a kernel can be timed alone.
class StoredBlock {
 public:
  StoredBlock(const WindowPlan& plan, const WindowOptions& windows, Parameters& parameters) : pairs_(plan.pairs) {
    const int32_t columns = static_cast<int32_t>(plan.columns.size());
    const size_t stride = static_cast<size_t>(round_up(columns, 16));
    for (Slot slot : plan.columns) x_.push_back(parameters.input.rows.row(slot));
    float* common = weights_.reserve((plan.windows.size() + 1) * stride);
    float* row = common;
    for (const WindowPlan::Window& window : plan.windows) {
      row += stride;
      add_output(parameters.output.rows.row(plan.columns[window.centre]), row);
      band_begin_.push_back(std::max(0, window.centre - windows.window));
      band_end_.push_back(std::min(columns, window.centre + windows.window + 1));
      for (int32_t j = window.begin; j < window.end; ++j) {
        row[j] = j == window.centre ? 0.0f : 1.0f;
        common[j] += row[j] * static_cast<float>(windows.negatives) / static_cast<float>(plan.negatives.size());
      }
    }
    for (Slot slot : plan.negatives) add_output(parameters.output.rows.row(slot), common);
    dim_ = static_cast<int32_t>(parameters.dim());
  }

  PairBlock block() const {
    PairBlock block;
    block.inputs = static_cast<int32_t>(x_.size());
    block.positives = static_cast<int32_t>(band_begin_.size());
    block.outputs = static_cast<int32_t>(y_.size());
    block.dim = dim_;
    block.x = x_.data();
    block.y = y_.data();
    block.weight = weight_.data();
    block.band_begin = band_begin_.data();
    block.band_end = band_end_.data();
    block.scale = 1e-6f;  // so small that passing over a block for ever does not change its numbers
    block.dx = x_.data();
    block.dy = y_.data();
    return block;
  }

  double useful_flops() const {
    const size_t negatives = y_.size() - band_begin_.size();
    return 6.0 * dim_ * static_cast<double>(static_cast<int64_t>(negatives * x_.size()) + pairs_);
  }

  void prefetch() const {
    for (const auto* rows : {&y_, &x_})
      for (const float* row : *rows)
        for (int32_t d = 0; d < dim_; d += 16) __builtin_prefetch(row + d, 1, 2);
  }

 private:
  void add_output(float* row, const float* weights) {
    y_.push_back(row);
    weight_.push_back(weights);
  }

  int64_t pairs_;
  int32_t dim_ = 0;
  std::vector<float*> x_, y_;
  std::vector<const float*> weight_;
  std::vector<int32_t> band_begin_, band_end_;
  AlignedBuffer<float> weights_;
};

// Tables of `rows` made-up words, and chunks of text over them.
struct Workload {
  Workload(const Settings& settings, int32_t rows, Words words, int32_t chunk_count)
      : vocabulary(made_up_vocabulary(rows, words)),
        tables(vocabulary, words == Words::kEven ? 0 : settings.sample),
        random(1) {
    const AliasTable draws(vocabulary, 1.0);
    for (int32_t i = 0; i < chunk_count; ++i) chunks.push_back(made_up_chunk(draws, random));
    auto made = Parameters::make({.rows = rows, .dim = static_cast<int64_t>(settings.dim)});
    STREAMVEC_CHECK(made.ok());
    parameters = std::move(made).value();
  }

  std::vector<StoredBlock> blocks(const WindowOptions& windows) {
    std::vector<StoredBlock> all;
    WindowPlanner planner(windows);
    WindowPlan plan;
    for (const Chunk& chunk : chunks) {
      planner.begin(chunk, tables, random);
      while (planner.next(plan)) all.emplace_back(plan, windows, parameters);
    }
    return all;
  }

  Vocabulary vocabulary;
  SamplingTables tables;
  Random random;
  std::vector<Chunk> chunks;
  Parameters parameters;
};

// What `pass` (which returns how much it did) does a second: the median of passes over 0.5 s, at least three of them.
template <typename Pass>
double median_rate(Pass pass) {
  pass();
  std::vector<double> rates;
  const double begin = thread_seconds();
  while (rates.size() < 3 || thread_seconds() - begin < 0.5) {
    const double start = thread_seconds();
    const double done = pass();
    rates.push_back(done / (thread_seconds() - start));
  }
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

// GFLOP/s over the blocks, some of them in each pass; as in training, the next block's rows are asked for before this
// one is run.
double kernel_gflops(PairKernel& kernel, const std::vector<StoredBlock>& blocks) {
  constexpr int kBlocksPerPass = 200;
  size_t next = 0;
  return 1e-9 * median_rate([&] {
           double flops = 0;
           for (int i = 0; i < kBlocksPerPass; ++i) {
             const StoredBlock& stored = blocks[next];
             next = (next + 1) % blocks.size();
             blocks[next].prefetch();
             STREAMVEC_CHECK(kernel.step(stored.block()).finite);
             flops += stored.useful_flops();
           }
           return flops;
         });
}

// Words of text a second, of which settings.keep are trained on, through the model's whole step: windows, negatives,
// weights and kernel, without reading any text.
double step_tokens_per_s(const Settings& settings, const std::string& kind, Workload& workload) {
  ModelOptions options;
  options.windows = settings.windows();
  options.kernel = kind;
  auto worker = make_model_worker(options, workload.parameters);
  STREAMVEC_CHECK(worker.ok());
  size_t next = 0;
  return median_rate([&] {
    const Chunk& chunk = workload.chunks[next];
    next = (next + 1) % workload.chunks.size();
    const StepStats stats = (*worker)->step(chunk, workload.tables, 1e-4f, workload.random);
    return static_cast<double>(stats.pairs) / (settings.window + 1) / settings.keep;
  });
}

double peak_of(const Peaks& peaks, const std::string& kind) {
  return kind == "amx" ? peaks.amx_gflops : kind == "bf16" ? peaks.bf16_gflops : peaks.fp32_gflops;
}

Json measure_kernels(const Settings& settings, const Peaks& peaks) {
  constexpr int32_t kCachedRows = 100;
  const int32_t rows = static_cast<int32_t>(settings.rows);
  Workload cached(settings, kCachedRows, Words::kEven, 1), random(settings, rows, Words::kEven, 10),
      text(settings, rows, Words::kZipf, 10);
  const auto cached_blocks = cached.blocks(settings.windows()), random_blocks = random.blocks(settings.windows());
  Json kernels = Json::array();
  for (const std::string& kind : pair_kernels_available()) {
    auto kernel = make_pair_kernel(kind);
    STREAMVEC_CHECK(kernel.ok());
    kernels.push_back({{"kind", kind},
                       {"name", (*kernel)->name()},
                       {"peak_gflops", peak_of(peaks, kind)},
                       {"cached_gflops", kernel_gflops(**kernel, cached_blocks)},
                       {"random_gflops", kernel_gflops(**kernel, random_blocks)},
                       {"step_tokens_per_s", step_tokens_per_s(settings, kind, text)}});
  }
  return kernels;
}

// What one raw word of text costs on average.
Json per_token(const Settings& settings, const WindowOptions& windows) {
  const double centres = windows.centres, inputs = centres + 2.0 * windows.window;
  const double pairs = windows.negatives_shared * inputs + centres * (windows.window + 1.0);
  const double rows = inputs + centres + windows.negatives_shared;
  const double flops = settings.keep * 6 * settings.dim * pairs / centres;
  const double bytes = settings.keep * 2 * sizeof(float) * settings.dim * rows / centres;
  return {{"flops", flops}, {"bytes", bytes}, {"flops_per_byte", flops / bytes}};
}

Json measure(const Settings& settings) {
  const WindowOptions windows = settings.windows();
  const Peaks peaks = measure_peaks();
  return {{"settings",
           {{"dim", settings.dim},
            {"window", settings.window},
            {"negatives", settings.negatives},
            {"sample", settings.sample},
            {"keep", settings.keep},
            {"rows", settings.rows}}},
          {"block",
           {{"centres", windows.centres},
            {"inputs", windows.centres + 2 * windows.window},
            {"negatives_shared", windows.negatives_shared}}},
          {"peaks",
           {{"fp32_gflops", peaks.fp32_gflops},
            {"bf16_gflops", peaks.bf16_gflops},
            {"amx_gflops", peaks.amx_gflops},
            {"read_gbs", peaks.read_gbs}}},
          {"per_token", per_token(settings, windows)},
          {"kernels", measure_kernels(settings, peaks)}};
}

void print_peak(const char* name, double gflops) {
  if (gflops > 0)
    std::printf("  %-28s %8.1f GFLOP/s\n", name, gflops);
  else
    std::printf("  %-28s this CPU has none\n", name);
}

void print_report(const Json& report) {
  const Json& peaks = report["peaks"];
  const Json& token = report["per_token"];
  const double flops = token["flops"], bytes = token["bytes"], gbs = peaks["read_gbs"];
  std::printf("one core at most\n");
  print_peak("fp32 multiply-adds", peaks["fp32_gflops"]);
  print_peak("bf16 dot products", peaks["bf16_gflops"]);
  print_peak("bf16 tiles (AMX)", peaks["amx_gflops"]);
  std::printf("  %-28s %8.1f GB/s\n", "memory, read in order", gbs);
  std::printf("a block: %d centres, %d inputs, %d shared negatives\n", report["block"]["centres"].get<int>(),
              report["block"]["inputs"].get<int>(), report["block"]["negatives_shared"].get<int>());
  std::printf("a word of text: %.1f kflop, %.2f kB of rows read and written, %.1f flop a byte\n", flops / 1e3,
              bytes / 1e3, token["flops_per_byte"].get<double>());
  std::printf("  were every row to come from memory, that would allow %.0f GFLOP/s or %.2f M tokens/s\n",
              gbs * flops / bytes, gbs * 1e3 / bytes);
  std::printf("%-14s %21s %21s %23s %12s\n", "kernel", "rows in cache", "rows at random", "whole step, Zipf words",
              "peak allows");
  for (const Json& kernel : report["kernels"]) {
    const double peak = kernel["peak_gflops"], cached = kernel["cached_gflops"], random = kernel["random_gflops"];
    const double tokens = kernel["step_tokens_per_s"];
    std::printf("%-14s %7.1f GFLOP/s %3.0f%% %7.1f GFLOP/s %3.0f%% %12.2f M tokens/s %6.2f M\n",
                kernel["name"].get<std::string>().c_str(), cached, 100 * cached / peak, random, 100 * random / peak,
                tokens / 1e6, 1e3 * peak / flops);
  }
}

bool parse(int argc, char** argv, Settings& settings) {
  const std::map<std::string, double*> values{
      {"--dim", &settings.dim},       {"--window", &settings.window}, {"--negatives", &settings.negatives},
      {"--sample", &settings.sample}, {"--keep", &settings.keep},     {"--rows", &settings.rows}};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      settings.json = true;
      continue;
    }
    const auto found = values.find(argv[i]);
    if (found == values.end() || i + 1 == argc) return false;
    char* end = nullptr;
    *found->second = std::strtod(argv[++i], &end);
    if (end == argv[i] || *end != '\0') return false;
  }
  return settings.dim >= 1 && settings.dim <= 65536 && settings.window >= 1 && settings.window <= 1000 &&
         settings.negatives >= 1 && settings.negatives <= 1000 && settings.sample >= 0 && settings.keep > 0 &&
         settings.keep <= 1 && settings.rows >= 1 && settings.rows * settings.dim <= 1e9;
}

}  // namespace
}  // namespace streamvec::bench

int main(int argc, char** argv) {
  streamvec::bench::Settings settings;
  if (!streamvec::bench::parse(argc, argv, settings)) {
    std::fprintf(stderr,
                 "usage: bench_roofline [--dim N] [--window N] [--negatives N] [--sample X] [--keep X] [--rows N] "
                 "[--json]\n");
    return 2;
  }
  const auto report = streamvec::bench::measure(settings);
  if (settings.json)
    std::cout << report.dump() << "\n";
  else
    streamvec::bench::print_report(report);
  return 0;
}
