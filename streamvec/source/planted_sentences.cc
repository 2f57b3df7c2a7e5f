#include "streamvec/source/planted_sentences.h"

#include <algorithm>
#include <utility>

#include "streamvec/source/planted_words.h"

namespace streamvec::planted {
namespace {

constexpr size_t kNamesPerPair = 5;
constexpr size_t kFillers = 3'000;

std::set<std::string> listed_words() {
  std::set<std::string> words;
  const auto add = [&](std::string_view list) {
    for (std::string& word : split(list)) words.insert(std::move(word));
  };
  add(function_words());
  for (const ClassWords& list : class_words())
    for (const std::string_view words_of : {list.members, list.before, list.after}) add(words_of);
  for (const RelationWords& list : relation_words())
    for (const std::string_view words_of : {list.pairs, list.first_side, list.second_side}) add(words_of);
  return words;
}

// "the hungry tiger hid": nothing but its class can be told from a member's neighbours. Describing and acting words
// see members more than each other, so that a member's neighbours are members.
void add_class_clause(Random& random, size_t word_class, const Member& member, Sentence& sentence) {
  const Lexicon& lexicon = Lexicon::instance();
  sentence.push_back(lexicon.functions.draw(random));
  sentence.push_back(any(lexicon.classes[word_class].before, random));
  sentence.push_back(member(word_class, random));
  sentence.push_back(any(lexicon.classes[word_class].after, random));
}

void make_class_sentence(Random& random, const Member& member, Sentence& sentence) {
  const size_t word_class = random.below(static_cast<uint32_t>(Lexicon::instance().classes.size()));
  add_class_clause(random, word_class, member, sentence);
  add_filling(random, 2 + random.below(3), sentence);
  if (random.below(2) == 0) add_class_clause(random, word_class, member, sentence);
  add_filling(random, 1 + random.below(3), sentence);
}

// Both sides of the word get one word of its pair and one of its side, in any order.
void make_relation_sentence(Random& random, Sentence& sentence) {
  const auto& relations = Lexicon::instance().relations;
  const Lexicon::Relation& relation = relations[random.below(static_cast<uint32_t>(relations.size()))];
  const Lexicon::Pair& pair = relation.pairs[random.below(static_cast<uint32_t>(relation.pairs.size()))];
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

}  // namespace

Words split(std::string_view list) {
  Words words;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(' ', begin), list.size());
    words.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

const std::string& any(const Words& words, Random& random) {
  return words[random.below(static_cast<uint32_t>(words.size()))];
}

ZipfList::ZipfList(Words words, double flatness) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i)
    reached_.push_back((reached_.empty() ? 0 : reached_.back()) + 1 / (static_cast<double>(i) + flatness));
}

const std::string& ZipfList::draw(Random& random) const {
  const double at = random.uniform() * reached_.back();
  const auto found = std::upper_bound(reached_.begin(), reached_.end(), at);
  return words_[std::min(static_cast<size_t>(found - reached_.begin()), words_.size() - 1)];
}

// Pronounceable words that are not in `taken`, each two or three syllables.
class Lexicon::WordMaker {
 public:
  explicit WordMaker(std::set<std::string> taken) : taken_(std::move(taken)) {}

  Words make(size_t count) {
    Words words;
    while (words.size() < count) {
      std::string word;
      for (uint32_t syllables = 2 + random_.below(2); syllables > 0; --syllables) {
        // A statement each: in one expression the order of the draws would be the compiler's choice.
        const std::string coda = syllables == 1 ? any(codas_, random_) : "";
        const std::string& vowel = any(vowels_, random_);
        word += any(onsets_, random_) + vowel + coda;
      }
      if (taken_.insert(word).second) words.push_back(word);
    }
    return words;
  }
  Relation make_relation(const RelationWords& list) {
    const Words words = split(list.pairs);
    Relation relation{{}, {split(list.first_side), split(list.second_side)}};
    for (size_t i = 0; i + 1 < words.size(); i += 2)
      relation.pairs.push_back({{words[i], words[i + 1]}, make(kNamesPerPair)});
    return relation;
  }
  std::vector<Relation> make_relations() {
    std::vector<Relation> relations_made;
    for (const RelationWords& list : relation_words()) relations_made.push_back(make_relation(list));
    return relations_made;
  }

 private:
  const Words onsets_ = split("b d f g h k l m n p r s t v z br dr gr kr pl st tr sh ch");
  const Words vowels_ = split("a e i o u ai ea ou");
  const Words codas_ = split("n r l s t m k nd st rn");
  std::set<std::string> taken_;
  Random random_{0x706c616e746564};  // the lexicon is the same for every seed
};

// The names of pairs are made before the fillers: members are initialised in the order they are declared.
Lexicon::Lexicon(WordMaker maker)
    : relations(maker.make_relations()), functions(split(function_words()), 1), fillers(maker.make(kFillers), 20) {
  for (const ClassWords& list : class_words())
    classes.push_back({ZipfList(split(list.members), 8), split(list.before), split(list.after)});
}

const Lexicon& Lexicon::instance() {
  static const Lexicon lexicon{WordMaker(listed_words())};
  return lexicon;
}

std::string_view usual_member(size_t word_class, Random& random) {
  return Lexicon::instance().classes[word_class].members.draw(random);
}

void add_filling(Random& random, uint32_t count, Sentence& sentence) {
  const Lexicon& lexicon = Lexicon::instance();
  for (; count > 0; --count)
    sentence.push_back(random.below(2) == 0 ? lexicon.functions.draw(random) : lexicon.fillers.draw(random));
}

void make_sentence(Random& random, const Member& member, Sentence& sentence) {
  sentence.clear();
  const uint32_t kind = random.below(20);
  if (kind < 9) return make_class_sentence(random, member, sentence);
  if (kind < 19) return make_relation_sentence(random, sentence);
  add_filling(random, 6 + random.below(6), sentence);
}

}  // namespace streamvec::planted
