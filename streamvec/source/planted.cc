#include "streamvec/source/planted.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "streamvec/core/random.h"
#include "streamvec/source/location.h"
#include "streamvec/source/planted_sentences.h"
#include "streamvec/source/planted_words.h"

namespace streamvec {
namespace {

using planted::split;

constexpr int64_t kDocumentTokens = 4'096;

std::string make_document(uint64_t seed, int64_t index, int64_t tokens) {
  Random random(mix(seed, static_cast<uint64_t>(index)));
  std::string text;
  planted::Sentence sentence;
  for (int64_t made = 0; made < tokens; made += static_cast<int64_t>(sentence.size())) {
    planted::make_sentence(random, planted::usual_member, sentence);
    if (static_cast<int64_t>(sentence.size()) > tokens - made) sentence.resize(static_cast<size_t>(tokens - made));
    for (const std::string_view word : sentence) (text += word) += ' ';
    text.back() = '\n';
  }
  return text;
}

template <typename T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

PlantedTruth make_truth() {
  PlantedTruth truth;
  for (const planted::ClassWords& list : planted::class_words())
    truth.classes.push_back({std::string(list.name), split(list.members)});
  for (const planted::RelationWords& list : planted::relation_words()) {
    truth.relations.push_back({std::string(list.name), {}});
    const planted::Words words = split(list.pairs);
    for (size_t i = 0; i + 1 < words.size(); i += 2) truth.relations.back().pairs.emplace_back(words[i], words[i + 1]);
  }
  return truth;
}

}  // namespace

std::string PlantedTruth::analogy_questions() const {
  std::string text;
  for (const Relation& relation : relations) {
    text += ": " + relation.name + "\n";
    for (const auto& [a, b] : relation.pairs)
      for (const auto& [c, d] : relation.pairs)
        if (a != c) text += a + " " + b + " " + c + " " + d + "\n";
  }
  return text;
}

const PlantedTruth& planted_truth() {
  static const PlantedTruth truth = make_truth();
  return truth;
}

Result<std::unique_ptr<Source>> PlantedSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(location.check_keys({"tokens", "seed"}));
  if (!location.host.empty() || !location.path.empty())
    return error(Code::kInvalidArgument, name, ": only settings may follow; try planted:?tokens=1000000&seed=1");
  Options options;
  STREAMVEC_ASSIGN_OR_RETURN(options.tokens, location.integer("tokens", options.tokens, 1, int64_t{1} << 50));
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t seed,
                             location.integer("seed", static_cast<int64_t>(options.seed), 0, int64_t{1} << 53));
  options.seed = static_cast<uint64_t>(seed);
  return std::unique_ptr<Source>(std::make_unique<PlantedSource>(options));
}

PlantedSource::PlantedSource(Options options) : options_(options) {
  STREAMVEC_CHECK(options.tokens > 0);
}

int64_t PlantedSource::documents() const {
  return (options_.tokens + kDocumentTokens - 1) / kDocumentTokens;
}

int64_t PlantedSource::bytes_read() const {
  return std::min(next_ * kDocumentTokens, options_.tokens) * kBytesPerToken;
}

std::string PlantedSource::name() const {
  return "planted:?tokens=" + std::to_string(options_.tokens) + "&seed=" + std::to_string(options_.seed);
}

Result<int64_t> PlantedSource::read(int64_t count_max, Deadline, std::vector<Document>& out) {
  int64_t count = 0;
  for (; count < count_max && next_ < documents(); ++count, ++next_) {
    const int64_t tokens = std::min(kDocumentTokens, options_.tokens - next_ * kDocumentTokens);
    out.push_back({make_document(options_.seed, next_, tokens), name() + "#" + std::to_string(next_ + 1)});
  }
  return count;
}

Status PlantedSource::seek(const std::string& cursor) {
  next_ = 0;
  if (cursor.empty()) return {};
  const size_t mark = cursor.rfind('#');
  int64_t next = 0;
  if (mark == std::string::npos || !parse_number(std::string_view(cursor).substr(mark + 1), next) || next < 0)
    return error(Code::kInvalidArgument, "not a cursor of planted text: ", cursor.substr(0, 200));
  if (cursor.substr(0, mark) != name() || next > documents())
    return error(Code::kFailedPrecondition, "the run stopped in ", cursor.substr(0, mark), ", but the source is now ",
                 name(), "; name the same source, or start anew");
  next_ = next;
  return {};
}

}  // namespace streamvec
