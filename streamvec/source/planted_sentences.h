// Sentences with a planted truth: what planted text and the newsroom's articles are made of. planted.h tells the story.
// Private to the sources.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec::planted {

using Words = std::vector<std::string>;
using Sentence = std::vector<std::string_view>;  // of words that live as long as the program

Words split(std::string_view list);  // at single spaces
const std::string& any(const Words& words, Random& random);

// Draws words with frequencies after Zipf's law: the n-th has a share of about 1 / (n + flatness).
class ZipfList {
 public:
  ZipfList(Words words, double flatness);
  const std::string& draw(Random& random) const;
  const Words& words() const { return words_; }

 private:
  Words words_;
  std::vector<double> reached_;  // sums of shares
};

// Everything that sentences are made of; the same for every seed.
class Lexicon {
 public:
  struct WordClass {
    ZipfList members;
    Words before, after;
  };
  struct Pair {
    std::string word[2];
    Words names;  // shared by both
  };
  struct Relation {
    std::vector<Pair> pairs;
    Words sides[2];
  };

  static const Lexicon& instance();

  std::vector<WordClass> classes;
  std::vector<Relation> relations;
  ZipfList functions;
  ZipfList fillers;

 private:
  class WordMaker;
  explicit Lexicon(WordMaker maker);
};

// Which word stands for a class (by index) in a clause. The usual one is drawn from the class's members.
using Member = std::function<std::string_view(size_t word_class, Random& random)>;
std::string_view usual_member(size_t word_class, Random& random);

// Replaces what `sentence` holds. Of 20 sentences about 9 show a class, 10 a relation, and one shows nothing.
void make_sentence(Random& random, const Member& member, Sentence& sentence);
// `count` words that show nothing: half function words, half fillers.
void add_filling(Random& random, uint32_t count, Sentence& sentence);

}  // namespace streamvec::planted
