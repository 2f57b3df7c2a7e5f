// How long does an epoch of the 2018 experiment's character model take, what share of the core's peak is that, and how
// many words a second does the trained model embed?
// Run: bench_rbsg [--threads 2] [--batch 8192] [--pool 256] [--batches 12] [--hidden 512] [--kernel auto] [--cell lstm]
//                 [--end-mark] [--words F] [--device cpu|cuda] [--products tf32|bf16] FILE...
//   An epoch is 3.35 M pairs (window 5, sample 2e-3, min-count 3; char 128, hidden 512, dim 200, 10 negatives),
//   extrapolated from --batches batches taken evenly from the text after one to warm up.
// A step is one LSTM cell for one character of one word. Plain: every word of every pair and its own negatives.
// Distinct: every word of a batch once. Trie: every beginning once. Pool: the same with negatives shared by the batch.
// Rows: beginnings that something follows; only they cost rows of recurrent products, 6 * 4H * H flops each.
// Words to embed are the vocabulary's, or all different words of the file --words names. With --kernel auto an LSTM's
// levels are multiplied in 8 bits there where the CPU can; the line that follows says what that or bf16 costs in
// exactness. With --device cuda batches follow each other in the text, are made before, and are timed together after
// some to warm up; nothing else is measured. --device cpu with --in-order does the same on the CPU: equal batches,
// equal losses.
#include "streamvec/model/rbsg.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/peaks.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/text/tokenizer.h"
#include "streamvec/vocab/sampling.h"

namespace streamvec::bench {
namespace {

constexpr double kEpochPairs = 3.35e6;

struct Settings {
  int32_t threads = 2, batch = 8'192, pool = 256, batches = 12, hidden = 512;
  bool end_mark = false, in_order = false;
  std::string kernel = "auto", cell = "lstm", words, device = "cpu", products = "bf16";
  std::vector<std::string> files;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Words of at least 3 occurrences, by falling count, and the text as their slots; windows run over sentence ends.
struct Text {
  Vocabulary vocabulary;
  std::vector<Slot> slots;

  bool read(const std::vector<std::string>& files) {
    std::vector<std::string> words;
    for (const std::string& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (bytes.empty()) return false;
      Tokens tokens;
      Tokenizer().tokenize(bytes, tokens);
      words.insert(words.end(), tokens.words.begin(), tokens.words.end());
    }
    std::unordered_map<std::string, int64_t> counts;
    for (const std::string& word : words) ++counts[word];
    std::vector<std::pair<int64_t, std::string>> kept;
    for (const auto& [word, count] : counts)
      if (count >= 3) kept.emplace_back(-count, word);
    std::sort(kept.begin(), kept.end());
    for (const auto& [count, word] : kept) vocabulary.add(word, -count);
    for (const std::string& word : words)
      if (const Slot slot = vocabulary.find(word); slot != kNoSlot) slots.push_back(slot);
    return true;
  }
};

void thin(const Text& text, Random& random, std::vector<Slot>& kept) {
  const Subsampling subsampling(text.vocabulary, 2e-3);
  for (const Slot slot : text.slots)
    if (subsampling.keep(slot, random.next_u32())) kept.push_back(slot);
}

// Pairs of the text from word `at` on, windows of 1 to 5.
RbsgBatch batch_at(const std::vector<Slot>& text, size_t at, const Settings& settings, Random& random) {
  RbsgBatch batch;
  for (size_t i = at; i < text.size() && batch.pairs() < settings.batch; ++i) {
    const size_t reach = 1 + random.below(5);
    for (size_t j = i > reach ? i - reach : 0; j <= std::min(i + reach, text.size() - 1); ++j) {
      if (j == i || batch.pairs() == settings.batch) continue;
      batch.centres.push_back(text[i]);
      batch.contexts.push_back(text[j]);
    }
  }
  return batch;
}

double peak_gflops(const Peaks& peaks, const std::string& kernel) {
  return kernel.starts_with("amx") ? peaks.amx_gflops : kernel == "bf16" ? peaks.bf16_gflops : peaks.fp32_gflops;
}

struct Steps {
  double plain = 0, distinct = 0, trie = 0, pool = 0, rows = 0;
};

// Of the form with negatives of each pair's own.
void count_plain(Rbsg& rbsg, const Text& text, const RbsgBatch& batch, Steps& steps) {
  Spelling spelling;
  std::vector<Spelling> spellings;
  for (Slot slot = 0; slot < text.vocabulary.size(); ++slot) {
    rbsg.characters().spell(text.vocabulary.word(slot), spelling);
    spellings.push_back(spelling);
  }
  for (const auto* slots : {&batch.centres, &batch.contexts, &batch.negatives})
    for (const Slot slot : *slots) steps.plain += static_cast<double>(spellings[static_cast<size_t>(slot)].size());
  RbsgPlan plan;
  plan.build(batch, 10, spellings, 1);
  for (const RbsgPlan::Side& side : plan.sides) {
    for (const auto& word : side.words) steps.distinct += static_cast<double>(word.size());
    CharTrie trie;
    trie.build(side.words);
    steps.trie += trie.nodes() - 1;
  }
}

// GFLOP/s of one core for the forward product of a level of `rows` beginnings, best of several.
double gemm_gflops(const PackedGemm& kernel, int64_t rows, int64_t hidden) {
  auto a = std::move(Matrix::make(rows, hidden)).value(), b = std::move(Matrix::make(hidden, 4 * hidden)).value();
  auto c = std::move(Matrix::make(rows, 4 * hidden)).value();
  PackedFactor packed;
  kernel.pack(b, packed);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = thread_seconds();
    kernel.multiply(a, packed, false, c.view());
    best = std::min(best, thread_seconds() - start);
  }
  return 2e-9 * static_cast<double>(rows * hidden * 4 * hidden) / best;
}

void train(const Settings& settings, const Text& text, Rbsg& rbsg) {
  Random random(1);
  std::vector<Slot> kept;
  thin(text, random, kept);
  const AliasTable draws(text.vocabulary);
  const StratifiedSampler pool(text.vocabulary);
  Steps steps;
  double time = 0, flops = 0, pairs = 0, loss = 0;
  for (int32_t b = -1; b < settings.batches; ++b) {
    const size_t at = kept.size() / static_cast<size_t>(settings.batches + 1) * static_cast<size_t>(b + 1);
    RbsgBatch batch = batch_at(kept, at, settings, random), plain = batch;
    batch.negatives.resize(static_cast<size_t>(settings.pool));
    pool.sample(random, batch.negatives);
    const double start = seconds();
    const Rbsg::BatchStats stats = rbsg.train_batch(batch, 1e-3f);
    if (b < 0) continue;
    time += seconds() - start;
    flops += stats.flops;
    pairs += static_cast<double>(stats.pairs);
    loss += stats.loss;
    steps.pool += static_cast<double>(stats.nodes);
    steps.rows += static_cast<double>(stats.inner);
    plain.form = RbsgBatch::Negatives::kPerPair;
    for (int64_t i = 0; i < 10 * plain.pairs(); ++i) plain.negatives.push_back(draws.sample(random));
    count_plain(rbsg, text, plain, steps);
  }
  const Peaks peaks = measure_peaks();
  const double peak = peak_gflops(peaks, rbsg.kernel_name()) * settings.threads;
  const double floor_flops = flops / pairs * kEpochPairs;
  std::printf("steps a pair: plain %.2f, distinct words %.2f, trie %.2f, trie and pool %.3f, of these rows %.3f\n",
              steps.plain / pairs, steps.distinct / pairs, steps.trie / pairs, steps.pool / pairs, steps.rows / pairs);
  std::printf("an epoch's products: %.2f TFLOP; at the peak of %d cores (%.0f GFLOP/s) %.1f s\n", floor_flops * 1e-12,
              settings.threads, peak, floor_flops * 1e-9 / peak);
  std::printf("an epoch: %.1f s; %.1f GFLOP/s, %.0f%% of the peak; mean loss %.3f\n", time / pairs * kEpochPairs,
              flops / time * 1e-9, 100 * flops / time * 1e-9 / peak, loss / pairs);
  const auto kernel = std::move(make_packed_gemm(settings.kernel)).value();
  std::printf("products alone, one core: %.0f GFLOP/s for 32 rows, %.0f for 128, %.0f for 512\n",
              gemm_gflops(*kernel, 32, settings.hidden), gemm_gflops(*kernel, 128, settings.hidden),
              gemm_gflops(*kernel, 512, settings.hidden));
}

// As one trains: batch after batch, the device never waited for but at the end.
bool train_in_order(const Settings& settings, const Text& text, Rbsg& rbsg) {
  constexpr int32_t kWarmUp = 20;
  Random random(1);
  std::vector<Slot> kept;
  thin(text, random, kept);
  const StratifiedSampler pool(text.vocabulary);
  std::vector<RbsgBatch> batches;
  size_t at = 0;
  for (int32_t b = 0; b < settings.batches + kWarmUp; ++b, at += static_cast<size_t>(settings.batch) / 6) {
    if (at + static_cast<size_t>(settings.batch) > kept.size()) at = 0;
    batches.push_back(batch_at(kept, at, settings, random));
    batches.back().negatives.resize(static_cast<size_t>(settings.pool));
    pool.sample(random, batches.back().negatives);
  }
  double start = 0, pairs = 0, loss = 0, flops = 0;
  const auto add = [&](const Rbsg::BatchStats& stats) {
    pairs += static_cast<double>(stats.pairs);
    loss += stats.loss;
    flops += stats.flops;  // of the CPU's batches alone
  };
  for (int32_t b = 0; b < settings.batches + kWarmUp; ++b) {
    if (b == kWarmUp) {
      if (!rbsg.settle().ok()) return false;
      pairs = loss = flops = 0;
      start = seconds();
    }
    add(rbsg.train_batch(batches[static_cast<size_t>(b)], 1e-3f));
  }
  const auto rest = rbsg.settle();
  if (!rest.ok()) return false;
  add(*rest);
  const double time = seconds() - start;
  std::printf("an epoch: %.3f s; %.3f ms a batch; mean loss %.5f\n", time / pairs * kEpochPairs,
              1e3 * time / settings.batches, loss / pairs);
  if (flops > 0) std::printf("an epoch's products: %.2f TFLOP\n", flops / pairs * kEpochPairs * 1e-12);
  return true;
}

// Beginnings of all words together that cost a row of the recurrent product.
double beginnings(Rbsg& rbsg, const std::vector<std::string_view>& words) {
  std::vector<Spelling> spellings(words.size());
  for (size_t i = 0; i < words.size(); ++i) rbsg.characters().spell(words[i], spellings[i]);
  const std::vector<std::span<const CharacterId>> views(spellings.begin(), spellings.end());
  CharTrie trie;
  trie.build(views);
  return trie.inner() - 1;
}

std::set<std::string> different_words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Tokens tokens;
  Tokenizer().tokenize(bytes, tokens);
  return {tokens.words.begin(), tokens.words.end()};
}

// Rows of unit length, after the mean of all is taken away: what is common to all words says nothing of any.
void centre(Matrix& rows) {
  std::vector<double> mean(static_cast<size_t>(rows.cols()));
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (int64_t d = 0; d < rows.cols(); ++d)
      mean[static_cast<size_t>(d)] += rows.row(i)[d] / static_cast<double>(rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double square = 0;
    for (int64_t d = 0; d < rows.cols(); ++d) {
      rows.row(i)[d] -= static_cast<float>(mean[static_cast<size_t>(d)]);
      square += rows.row(i)[d] * rows.row(i)[d];
    }
    for (int64_t d = 0; d < rows.cols(); ++d) rows.row(i)[d] /= static_cast<float>(std::sqrt(square));
  }
}

double dot(const Matrix& a, int64_t i, const Matrix& b, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < a.cols(); ++d) sum += a.row(i)[d] * b.row(j)[d];
  return sum;
}

// The rows nearest to row i, itself left out.
std::vector<int64_t> nearest(const Matrix& rows, int64_t i, size_t count) {
  std::vector<std::pair<double, int64_t>> all;
  for (int64_t j = 0; j < rows.rows(); ++j)
    if (j != i) all.emplace_back(-dot(rows, i, rows, j), j);
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(count), all.end());
  std::vector<int64_t> best;
  for (size_t n = 0; n < count; ++n) best.push_back(all[n].second);
  return best;
}

// What the kernel costs in exactness: some of the words' vectors beside those in f32.
void compare_with_f32(Rbsg& rbsg, const std::vector<std::string_view>& words, const Matrix& vectors) {
  constexpr int64_t kSome = 500;
  constexpr size_t kNearest = 10;
  const auto exact = rbsg.vectors();
  if (!exact.ok() || static_cast<int64_t>(words.size()) < kSome) return;
  Matrix wanted = std::move(Matrix::make(kSome, vectors.cols())).value(), got = std::move(wanted.copy()).value();
  for (int64_t i = 0; i < kSome; ++i) {
    const int64_t word = i * static_cast<int64_t>(words.size()) / kSome;
    if (!(*exact)->generate(words[static_cast<size_t>(word)], wanted.view().row_span(i)).ok()) return;
    std::copy_n(vectors.row(word), vectors.cols(), got.row(i));
  }
  centre(wanted);
  centre(got);
  double mean = 0, least = 1, shared = 0;
  for (int64_t i = 0; i < kSome; ++i) {
    const double cosine = dot(wanted, i, got, i);
    mean += cosine / kSome;
    least = std::min(least, cosine);
    const std::vector<int64_t> first = nearest(wanted, i, kNearest), second = nearest(got, i, kNearest);
    for (const int64_t j : first) shared += static_cast<double>(std::count(second.begin(), second.end(), j));
  }
  std::printf("beside f32, %ld words, centred: cosine %.6f (least %.6f), of the ten nearest %.1f%% the same\n",
              static_cast<long>(kSome), mean, least, 100 * shared / (kSome * kNearest));
}

void embed(const Settings& settings, const Text& text, Rbsg& rbsg) {
  std::vector<std::string_view> words;
  const std::set<std::string> more = different_words(settings.words);
  words.assign(more.begin(), more.end());
  for (Slot slot = 0; more.empty() && slot < text.vocabulary.size(); ++slot)
    words.push_back(text.vocabulary.word(slot));
  Matrix out = std::move(Matrix::make(static_cast<int64_t>(words.size()), rbsg.options().dim)).value();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = thread_seconds();
    if (!rbsg.embed(words, Rbsg::kCentre, 1, out.view()).ok()) return;
    best = std::min(best, thread_seconds() - start);
  }
  const double rows = beginnings(rbsg, words) / static_cast<double>(words.size());
  const double flops = 8.0 * settings.hidden * settings.hidden * rows + 2.0 * settings.hidden * rbsg.options().dim;
  const double floor = peak_gflops(measure_peaks(), rbsg.kernel_name()) * 1e9 / flops;
  std::printf("embedding %zu words: %.0f words/s a core; %.2f rows a word, at the peak %.0f words/s\n", words.size(),
              static_cast<double>(words.size()) / best, rows, floor);
  compare_with_f32(rbsg, words, out);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto number = [&](const char* name, int32_t& value) {
      if (flag != name || i + 1 == argc) return false;
      value = std::atoi(argv[++i]);
      return true;
    };
    if (number("--threads", settings.threads) || number("--batch", settings.batch) || number("--pool", settings.pool) ||
        number("--batches", settings.batches) || number("--hidden", settings.hidden))
      continue;
    const auto text = [&](const char* name, std::string& value) {
      if (flag != name || i + 1 == argc) return false;
      value = argv[++i];
      return true;
    };
    if (text("--kernel", settings.kernel) || text("--cell", settings.cell) || text("--products", settings.products) ||
        text("--words", settings.words) || text("--device", settings.device))
      continue;
    if (flag == "--end-mark")
      settings.end_mark = true;
    else if (flag == "--in-order")
      settings.in_order = true;
    else
      settings.files.push_back(flag);
  }
  return settings;
}

}  // namespace
}  // namespace streamvec::bench

int main(int argc, char** argv) {
  using namespace streamvec;
  const bench::Settings settings = bench::parse(argc, argv);
  bench::Text text;
  if (settings.files.empty() || !text.read(settings.files)) {
    std::fprintf(stderr, "usage: bench_rbsg [options] FILE...   (each must be there and hold text)\n");
    return 2;
  }
  RbsgOptions options;
  options.hidden = settings.hidden;
  options.threads = settings.threads;
  options.kernel = settings.kernel;
  options.cell = settings.cell == "gru" ? RecurrentCell::kGru : RecurrentCell::kLstm;
  options.characters.end_mark = settings.end_mark;
  options.cuda = settings.device == "cuda";
  options.cuda_bf16 = settings.products == "bf16";
  auto rbsg = Rbsg::make(options);
  if (!rbsg.ok()) {
    std::fprintf(stderr, "%s\n", rbsg.status().message().c_str());
    return 1;
  }
  for (Slot slot = 0; slot < text.vocabulary.size(); ++slot) (*rbsg)->set_word(slot, text.vocabulary.word(slot));
  std::printf("%zu words of text, %d in the vocabulary, %d threads, batch %d, pool %d, %s %d, end mark %s, kernel %s\n",
              text.slots.size(), text.vocabulary.size(), settings.threads, settings.batch, settings.pool,
              settings.cell.c_str(), settings.hidden, settings.end_mark ? "yes" : "no", (*rbsg)->kernel_name().c_str());
  if (options.cuda || settings.in_order) return bench::train_in_order(settings, text, **rbsg) ? 0 : 1;
  bench::train(settings, text, **rbsg);
  bench::embed(settings, text, **rbsg);
  return 0;
}
