#include "streamvec/eval/history.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "streamvec/core/durable_file.h"
#include "streamvec/format/safetensors.h"
#include "streamvec/vocab/vocab_file.h"

namespace streamvec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors", kWordsEnding = ".vocab.tsv";
constexpr int64_t kWordsBytesMax = int64_t{1} << 30;

std::string words_path(const std::string& path) {
  return path.substr(0, path.size() - kEnding.size()) + std::string(kWordsEnding);
}

// "120-a.safetensors" with the suffix "-a" is step 120; nothing for other names.
std::optional<int64_t> step_of(const std::string& name, std::string_view suffix) {
  const std::string tail = std::string(suffix) + std::string(kEnding);
  if (!name.ends_with(tail)) return std::nullopt;
  const char* end = name.data() + name.size() - tail.size();
  int64_t step = 0;
  const auto [stopped, failed] = std::from_chars(name.data(), end, step);
  if (failed != std::errc() || stopped != end || step < 0 || std::to_string(step) + tail != name) return std::nullopt;
  return step;
}

int64_t number_in(const std::map<std::string, std::string>& metadata, const std::string& key) {
  const auto at = metadata.find(key);
  int64_t number = 0;
  if (at != metadata.end()) std::from_chars(at->second.data(), at->second.data() + at->second.size(), number);
  return number;
}

uint64_t sum_of(MatrixView<const float> rows) {
  Checksum sum;
  for (int64_t i = 0; i < rows.rows; ++i)
    sum.update({reinterpret_cast<const char*>(rows.row(i)), static_cast<size_t>(rows.cols) * sizeof(float)});
  return sum.value();
}

// The words with most occurrences, falling; of equals the lower slot first.
Result<Snapshot> most_frequent(const Snapshot& snapshot, int64_t words_max) {
  std::vector<Slot> slots(static_cast<size_t>(snapshot.vocabulary.size()));
  std::iota(slots.begin(), slots.end(), 0);
  std::stable_sort(slots.begin(), slots.end(),
                   [&](Slot a, Slot b) { return snapshot.vocabulary.count(a) > snapshot.vocabulary.count(b); });
  if (static_cast<int64_t>(slots.size()) > words_max) slots.resize(static_cast<size_t>(words_max));
  Snapshot chosen;
  chosen.model = snapshot.model;
  STREAMVEC_ASSIGN_OR_RETURN(chosen.input, Matrix::make(static_cast<int64_t>(slots.size()), snapshot.dim()));
  for (const Slot slot : slots) {
    std::copy_n(snapshot.input.row(slot), snapshot.dim(), chosen.input.row(chosen.vocabulary.size()));
    chosen.vocabulary.add(snapshot.vocabulary.word(slot), snapshot.vocabulary.count(slot));
  }
  return chosen;
}

void note(std::vector<std::string>* notes, const Status& status) {
  if (notes != nullptr) notes->push_back(status.message());
}

void remove_snapshot(const std::string& path) {
  ::unlink(path.c_str());
  ::unlink(words_path(path).c_str());
}

// What a crash left: files that were not renamed, words whose vectors never came. REQUIRES: nobody is writing.
void remove_leftovers(const std::string& dir) {
  std::error_code failed;
  std::vector<std::string> leftovers;
  for (fs::directory_iterator at(dir, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string path = at->path().string();
    std::error_code ignored;
    const bool orphan = path.ends_with(kWordsEnding) &&
                        !fs::exists(path.substr(0, path.size() - kWordsEnding.size()) + std::string(kEnding), ignored);
    if (orphan || at->path().filename().string().find(".partial-") != std::string::npos) leftovers.push_back(path);
  }
  for (const std::string& path : leftovers) ::unlink(path.c_str());
}

Status check_sum(const std::map<std::string, std::string>& metadata, const std::string& key, uint64_t sum,
                 const std::string& path) {
  const auto at = metadata.find(key);
  if (at == metadata.end() || at->second == Checksum::to_text(sum)) return {};
  return error(Code::kDataLoss, path, " does not have the ", key, " it was written with; it was damaged");
}

Result<Vocabulary> load_words(const std::string& path, const std::map<std::string, std::string>& metadata) {
  STREAMVEC_ASSIGN_OR_RETURN(const FileReader file, FileReader::open(path));
  STREAMVEC_ASSIGN_OR_RETURN(const std::string text, file.read_all(kWordsBytesMax));
  Checksum sum;
  sum.update(text);
  STREAMVEC_RETURN_IF_ERROR(check_sum(metadata, "words_xxh3", sum.value(), path));
  return parse_vocabulary(text, path);
}

}  // namespace

std::vector<size_t> steps_to_drop(std::vector<int64_t> steps, int64_t count_max) {
  std::vector<size_t> index(steps.size()), dropped;
  std::iota(index.begin(), index.end(), size_t{0});
  while (steps.size() > 2 && static_cast<int64_t>(steps.size()) > count_max) {
    // Without i, the ages of its neighbours differ by this factor: the smallest is missed least.
    const auto gap = [&](size_t i) {
      const auto newer = static_cast<double>(steps.back() - steps[i + 1]);
      return newer > 0 ? static_cast<double>(steps.back() - steps[i - 1]) / newer
                       : std::numeric_limits<double>::infinity();
    };
    size_t least = 1;
    for (size_t i = 2; i + 1 < steps.size(); ++i)
      if (gap(i) <= gap(least)) least = i;
    dropped.push_back(index[least]);
    steps.erase(steps.begin() + static_cast<int64_t>(least));
    index.erase(index.begin() + static_cast<int64_t>(least));
  }
  return dropped;
}

History::History(const std::string& model_dir, Options options) : dir_(model_dir + "/history"), options_(options) {
  options_.entries_max = std::max<int64_t>(2, options_.entries_max);
  options_.halves_max = std::max<int64_t>(2, options_.halves_max);
}

Status History::save(const Snapshot& snapshot, const StreamMoment& moment, const std::string& name) {
  STREAMVEC_CHECK(moment.step >= 0);
  if (::mkdir(dir_.c_str(), 0777) == 0)
    STREAMVEC_RETURN_IF_ERROR(sync_directory(directory_of(dir_)));
  else if (errno != EEXIST)
    return file_error(errno, "create the directory", dir_);
  STREAMVEC_ASSIGN_OR_RETURN(const Snapshot chosen, most_frequent(snapshot, options_.words_max));
  const std::string path = dir_ + "/" + name + std::string(kEnding), words = format_vocabulary(chosen.vocabulary);
  STREAMVEC_RETURN_IF_ERROR(write_file_durably(words_path(path), words));
  const std::map<std::string, std::string> metadata = {{"format", "streamvec"},
                                                       {"model", chosen.model},
                                                       {"step", std::to_string(moment.step)},
                                                       {"time", std::to_string(moment.time_s)},
                                                       {"tokens", std::to_string(moment.tokens)},
                                                       {"words_xxh3", Checksum::of(words)},
                                                       {"values_xxh3", Checksum::to_text(sum_of(chosen.input.view()))}};
  const NamedMatrix tensors[] = {{"input", chosen.input.view()}};
  STREAMVEC_ASSIGN_OR_RETURN(DurableFile file, DurableFile::create(path));
  STREAMVEC_RETURN_IF_ERROR(write_safetensors(file.writer(), metadata, tensors).status());
  return file.commit();
}

Status History::add(const Snapshot& snapshot, const StreamMoment& moment) {
  STREAMVEC_RETURN_IF_ERROR(save(snapshot, moment, std::to_string(moment.step)));
  return thin();
}

Status History::add_halves(const Snapshot& a, const Snapshot& b, const StreamMoment& moment) {
  STREAMVEC_RETURN_IF_ERROR(save(a, moment, std::to_string(moment.step) + "-a"));
  STREAMVEC_RETURN_IF_ERROR(save(b, moment, std::to_string(moment.step) + "-b"));
  return thin();
}

Status History::forget_after(int64_t step) {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, list());
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, list_halves());
  for (const HistoryEntry& entry : entries)
    if (entry.moment.step > step) remove_snapshot(entry.path);
  for (const HistoryHalves& pair : halves)
    if (pair.a.moment.step > step)
      for (const HistoryEntry* half : {&pair.a, &pair.b}) remove_snapshot(half->path);
  return {};
}

Status History::thin() {
  STREAMVEC_ASSIGN_OR_RETURN(const auto entries, list());
  std::vector<int64_t> steps;
  for (const HistoryEntry& entry : entries) steps.push_back(entry.moment.step);
  for (const size_t i : steps_to_drop(steps, options_.entries_max)) remove_snapshot(entries[i].path);
  STREAMVEC_ASSIGN_OR_RETURN(const auto halves, list_halves());
  steps.clear();
  for (const HistoryHalves& pair : halves) steps.push_back(pair.a.moment.step);
  for (const size_t i : steps_to_drop(steps, options_.halves_max)) {
    remove_snapshot(halves[i].a.path);
    remove_snapshot(halves[i].b.path);
  }
  remove_leftovers(dir_);
  return sync_directory(dir_);
}

Result<std::vector<HistoryEntry>> History::list_named(std::string_view suffix, std::vector<std::string>* notes) const {
  std::vector<HistoryEntry> entries;
  std::error_code failed;
  for (fs::directory_iterator at(dir_, failed), end; !failed && at != end; at.increment(failed)) {
    const auto step = step_of(at->path().filename().string(), suffix);
    if (!step) continue;
    const auto reader = SafetensorsReader::open(at->path().string());
    if (!reader.ok()) {
      note(notes, reader.status());
      continue;
    }
    const auto& metadata = reader->metadata();
    entries.push_back({{*step, number_in(metadata, "time"), number_in(metadata, "tokens")}, at->path().string()});
  }
  if (failed && failed != std::errc::no_such_file_or_directory) return file_error(failed.value(), "list", dir_);
  std::sort(entries.begin(), entries.end(),
            [](const HistoryEntry& a, const HistoryEntry& b) { return a.moment.step < b.moment.step; });
  return entries;
}

Result<std::vector<HistoryEntry>> History::list(std::vector<std::string>* notes) const {
  return list_named("", notes);
}

Result<std::vector<HistoryHalves>> History::list_halves(std::vector<std::string>* notes) const {
  STREAMVEC_ASSIGN_OR_RETURN(const auto all_a, list_named("-a", notes));
  STREAMVEC_ASSIGN_OR_RETURN(const auto all_b, list_named("-b", notes));
  std::vector<HistoryHalves> halves;
  for (const HistoryEntry& a : all_a)
    for (const HistoryEntry& b : all_b)
      if (a.moment.step == b.moment.step) halves.push_back({a, b});
  return halves;
}

Result<std::optional<HalvesThenAndNow>> History::load_halves(int64_t old_step, int64_t new_step,
                                                             std::vector<std::string>* notes) const {
  STREAMVEC_ASSIGN_OR_RETURN(const auto listed, list_halves(notes));
  if (listed.empty()) return std::optional<HalvesThenAndNow>();
  const auto nearest = [&](int64_t step) {
    const auto distance = [&](const HistoryHalves& pair) { return std::abs(pair.a.moment.step - step); };
    return std::min_element(listed.begin(), listed.end(),
                            [&](const auto& x, const auto& y) { return distance(x) < distance(y); });
  };
  // Halves of then must not have seen what came later; those are thinned, so that the nearest may have.
  auto then = nearest(old_step);
  const auto now = nearest(new_step);
  for (auto pair = listed.begin(); pair != listed.end(); ++pair) {
    const int64_t step = pair->a.moment.step;
    if (step <= old_step && (then->a.moment.step > old_step || then->a.moment.step < step)) then = pair;
  }
  if (then == now) return std::optional<HalvesThenAndNow>();
  HalvesThenAndNow loaded;
  for (auto [entry, snapshot] : {std::pair{&then->a, &loaded.old_a}, std::pair{&then->b, &loaded.old_b},
                                 std::pair{&now->a, &loaded.new_a}, std::pair{&now->b, &loaded.new_b}}) {
    auto one = load(*entry);
    if (!one.ok()) {
      note(notes, one.status());
      return std::optional<HalvesThenAndNow>();
    }
    *snapshot = std::move(*one);
  }
  return std::optional<HalvesThenAndNow>(std::move(loaded));
}

Result<Snapshot> History::load(const HistoryEntry& entry) {
  STREAMVEC_ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::open(entry.path));
  const TensorInfo* input = reader.find("input");
  if (input == nullptr) return error(Code::kDataLoss, entry.path, " has no tensor named 'input'");
  Snapshot snapshot;
  snapshot.step = entry.moment.step;
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.vocabulary, load_words(words_path(entry.path), reader.metadata()));
  TableReading reading;
  STREAMVEC_ASSIGN_OR_RETURN(snapshot.input, reader.read(*input, 0, reading));
  STREAMVEC_RETURN_IF_ERROR(check_sum(reader.metadata(), "values_xxh3", reading.checksum, entry.path));
  if (snapshot.input.rows() != snapshot.vocabulary.size())
    return error(Code::kDataLoss, entry.path, " has ", snapshot.input.rows(), " rows for ", snapshot.vocabulary.size(),
                 " words; one of the two files is not the one it was written with");
  if (const auto model = reader.metadata().find("model"); model != reader.metadata().end())
    snapshot.model = model->second;
  return snapshot;
}

}  // namespace streamvec
