#include "streamvec/source/planted.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "streamvec/core/random.h"
#include "streamvec/source/location.h"
#include "streamvec/source/planted_words.h"

namespace streamvec {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kDocumentTokens = 4'096;
constexpr size_t kNamesPerPair = 5;
constexpr size_t kFillers = 3'000;

Words split(std::string_view text) {
  Words words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Pronounceable words that are not in `taken`, each two or three syllables.
class WordMaker {
 public:
  explicit WordMaker(std::set<std::string> taken) : taken_(std::move(taken)) {}

  Words make(size_t count) {
    Words words;
    while (words.size() < count) {
      std::string word;
      for (uint32_t syllables = 2 + random_.below(2); syllables > 0; --syllables)
        word += pick(kOnsets) + pick(kVowels) + (syllables == 1 ? pick(kCodas) : "");
      if (taken_.insert(word).second) words.push_back(word);
    }
    return words;
  }

 private:
  const std::string& pick(const Words& parts) { return parts[random_.below(static_cast<uint32_t>(parts.size()))]; }

  const Words kOnsets = split("b d f g h k l m n p r s t v z br dr gr kr pl st tr sh ch");
  const Words kVowels = split("a e i o u ai ea ou");
  const Words kCodas = split("n r l s t m k nd st rn");
  std::set<std::string> taken_;
  Random random_{0x706c616e746564};  // the lexicon is the same for every seed
};

// Draws words with frequencies after Zipf's law: the n-th has a share of about 1 / n.
class ZipfList {
 public:
  ZipfList(Words words, double flatness) : words_(std::move(words)) {
    for (size_t i = 0; i < words_.size(); ++i)
      reached_.push_back((reached_.empty() ? 0 : reached_.back()) + 1 / (static_cast<double>(i) + flatness));
  }
  const std::string& draw(Random& random) const {
    const double at = random.uniform() * reached_.back();
    const auto found = std::upper_bound(reached_.begin(), reached_.end(), at);
    return words_[std::min(static_cast<size_t>(found - reached_.begin()), words_.size() - 1)];
  }
  size_t draw_index(Random& random) const { return static_cast<size_t>(&draw(random) - words_.data()); }

 private:
  Words words_;
  std::vector<double> reached_;
};

const std::string& any(const Words& words, Random& random) {
  return words[random.below(static_cast<uint32_t>(words.size()))];
}

struct ClassPlan {
  ZipfList members;
  Words before, after;
};
struct PairPlan {
  std::string word[2];
  Words names;  // shared by both
};
struct RelationPlan {
  std::vector<PairPlan> pairs;
  Words sides[2];
};

std::set<std::string> listed_words() {
  std::set<std::string> words;
  const auto add = [&](std::string_view list) {
    for (std::string& word : split(list)) words.insert(std::move(word));
  };
  add(planted::function_words());
  for (const planted::ClassWords& list : planted::class_words())
    for (const std::string_view words_of : {list.members, list.before, list.after}) add(words_of);
  for (const planted::RelationWords& list : planted::relation_words())
    for (const std::string_view words_of : {list.pairs, list.first_side, list.second_side}) add(words_of);
  return words;
}

// Everything that sentences are made of.
class Lexicon {
 public:
  Lexicon() : maker_(listed_words()) {
    for (const planted::ClassWords& list : planted::class_words())
      classes.push_back({ZipfList(split(list.members), 8), split(list.before), split(list.after)});
    for (const planted::RelationWords& list : planted::relation_words()) relations.push_back(plan(list));
    fillers.emplace(maker_.make(kFillers), 20);
  }

  std::vector<ClassPlan> classes;
  std::vector<RelationPlan> relations;
  ZipfList functions{split(planted::function_words()), 1};
  std::optional<ZipfList> fillers;

 private:
  RelationPlan plan(const planted::RelationWords& list) {
    const Words words = split(list.pairs);
    RelationPlan relation{{}, {split(list.first_side), split(list.second_side)}};
    for (size_t i = 0; i + 1 < words.size(); i += 2)
      relation.pairs.push_back({{words[i], words[i + 1]}, maker_.make(kNamesPerPair)});
    return relation;
  }
  WordMaker maker_;
};

const Lexicon& lexicon() {
  static const Lexicon instance;
  return instance;
}

using Sentence = std::vector<std::string_view>;

void add_filling(Random& random, uint32_t count, Sentence& sentence) {
  for (; count > 0; --count)
    sentence.push_back(random.below(2) == 0 ? lexicon().functions.draw(random) : lexicon().fillers->draw(random));
}

// "the hungry tiger hid": nothing but its class can be told from a member's neighbours. Describing and acting words
// see members more than each other, so that a member's neighbours are members.
void add_class_clause(Random& random, const ClassPlan& plan, Sentence& sentence) {
  sentence.push_back(lexicon().functions.draw(random));
  sentence.push_back(any(plan.before, random));
  sentence.push_back(plan.members.draw(random));
  sentence.push_back(any(plan.after, random));
}

void make_class_sentence(Random& random, Sentence& sentence) {
  const auto& classes = lexicon().classes;
  const ClassPlan& plan = classes[random.below(static_cast<uint32_t>(classes.size()))];
  add_class_clause(random, plan, sentence);
  add_filling(random, 2 + random.below(3), sentence);
  if (random.below(2) == 0) add_class_clause(random, plan, sentence);
  add_filling(random, 1 + random.below(3), sentence);
}

// Both sides of the word get one word of its pair and one of its side, in any order.
void make_relation_sentence(Random& random, Sentence& sentence) {
  const auto& relations = lexicon().relations;
  const RelationPlan& relation = relations[random.below(static_cast<uint32_t>(relations.size()))];
  const PairPlan& pair = relation.pairs[random.below(static_cast<uint32_t>(relation.pairs.size()))];
  const uint32_t side = random.below(2);
  const auto add_half = [&] {
    const std::string& name = any(pair.names, random);
    const std::string& role = any(relation.sides[side], random);
    const bool name_first = random.below(2) == 0;
    sentence.push_back(name_first ? name : role);
    sentence.push_back(name_first ? role : name);
  };
  add_filling(random, 1 + random.below(2), sentence);
  add_half();
  sentence.push_back(pair.word[side]);
  add_half();
  add_filling(random, 1 + random.below(3), sentence);
}

void make_sentence(Random& random, Sentence& sentence) {
  sentence.clear();
  const uint32_t kind = random.below(20);
  if (kind < 9) return make_class_sentence(random, sentence);
  if (kind < 19) return make_relation_sentence(random, sentence);
  add_filling(random, 6 + random.below(6), sentence);
}

std::string make_document(uint64_t seed, int64_t index, int64_t tokens) {
  Random random(mix(seed, static_cast<uint64_t>(index)));
  std::string text;
  Sentence sentence;
  for (int64_t made = 0; made < tokens; made += static_cast<int64_t>(sentence.size())) {
    make_sentence(random, sentence);
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
    const Words words = split(list.pairs);
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
