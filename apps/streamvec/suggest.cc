#include "apps/streamvec/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace streamvec::cli {
namespace {

constexpr std::array kNamesElsewhere = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"size", "dim"},          {"vectorsize", "dim"},  {"dimension", "dim"},      {"ws", "window"},
    {"neg", "negatives"},     {"iter", "epochs"},     {"mincount", "min-count"}, {"workers", "threads"},
    {"alpha", "lr"},          {"learningrate", "lr"}, {"t", "sample"},           {"subsample", "sample"},
    {"output", "out"},        {"topn", "k"},          {"maxvocab", "vocab-max"}, {"maxvocabsize", "vocab-max"},
    {"neighbors", "nearest"}, {"nn", "nearest"},      {"similar", "nearest"},    {"convert", "export"},
    {"analogies", "analogy"}, {"evaluate", "eval"},   {"test", "eval"},          {"skipgram", "train"},
});

std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '-' && c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

int cost(const std::string& typed, const std::string& name) {
  const int distance = edit_distance(typed, name);
  const size_t common = std::min(typed.size(), name.size());
  const bool beginning = common >= 3 && typed.compare(0, common, name, 0, common) == 0;
  return beginning ? std::min(distance, 1) : distance;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

std::string nearest_name(std::string_view typed, const std::vector<std::string_view>& names) {
  // Only the beginning of a monstrous argument is compared: the table above is quadratic.
  const std::string wanted = plain(typed.substr(0, 64));
  for (const auto& [elsewhere, ours] : kNamesElsewhere)
    if (wanted == elsewhere && std::find(names.begin(), names.end(), ours) != names.end()) return std::string(ours);
  const auto nearest = std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return cost(wanted, plain(a)) < cost(wanted, plain(b));
  });
  return nearest == names.end() ? "" : std::string(*nearest);
}

}  // namespace streamvec::cli
