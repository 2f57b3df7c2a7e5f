#include "streamvec/text/stop_words.h"

#include <array>

namespace streamvec {
namespace {

// clang-format off
constexpr auto kEnglish = std::to_array<std::string_view>({
    // articles, demonstratives, quantifiers
    "a", "an", "the", "this", "that", "these", "those", "such", "some", "any", "each", "every", "either", "neither",
    "both", "all", "other", "another", "same", "own", "much", "many", "more", "most", "less", "least", "few", "several",
    // pronouns
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "you", "your", "yours", "yourself",
    "yourselves", "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself", "they", "them",
    "their", "theirs", "themselves", "one's", "oneself", "who", "whom", "whose", "which", "what", "whoever", "whatever",
    "whichever",
    // prepositions
    "of", "in", "on", "at", "by", "for", "with", "without", "within", "about", "against", "between", "among", "into",
    "onto", "through", "throughout", "during", "before", "after", "above", "below", "to", "from", "up", "down", "over",
    "under", "upon", "off", "out", "toward", "towards", "per", "via", "across", "along", "around", "behind", "beside",
    "besides", "beyond", "near", "until", "till", "since",
    // conjunctions and question words
    "and", "or", "nor", "but", "if", "unless", "because", "although", "though", "while", "whereas", "whether", "as",
    "than", "so", "yet", "when", "where", "why", "how", "whenever", "wherever", "however", "therefore", "thus", "hence",
    // auxiliary and modal verbs
    "am", "is", "are", "was", "were", "be", "been", "being", "have", "has", "had", "having", "do", "does", "did",
    "done", "doing", "can", "cannot", "could", "may", "might", "must", "shall", "should", "will", "would", "ought",
    // contractions
    "i'm", "i've", "i'll", "i'd", "you're", "you've", "you'll", "you'd", "he's", "he'll", "he'd", "she's", "she'll",
    "she'd", "it's", "it'll", "it'd", "we're", "we've", "we'll", "we'd", "they're", "they've", "they'll", "they'd",
    "that's", "that'll", "there's", "here's", "what's", "who's", "where's", "when's", "how's", "let's", "isn't",
    "aren't", "wasn't", "weren't", "haven't", "hasn't", "hadn't", "don't", "doesn't", "didn't", "can't", "couldn't",
    "mightn't", "mustn't", "shan't", "shouldn't", "won't", "wouldn't",
    // adverbs of degree, time and place; negation
    "no", "not", "only", "just", "also", "too", "very", "quite", "rather", "almost", "even", "again", "ever", "once",
    "then", "now", "here", "there", "still", "already", "always", "often", "sometimes", "else", "further",
    // what is left when text was cut at apostrophes (text8 and its kin)
    "s", "t", "d", "m", "ll", "ve", "re",
});
// clang-format on

}  // namespace

std::span<const std::string_view> english_stop_words() {
  return kEnglish;
}

}  // namespace streamvec
