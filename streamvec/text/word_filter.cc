#include "streamvec/text/word_filter.h"

#include "streamvec/text/stop_words.h"
#include "streamvec/text/word_file.h"

namespace streamvec {
namespace {

constexpr std::string_view kEnglish = "english";

// The word that `text` is, or "" when the tokeniser makes none or several of it.
std::string one_word(Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens;
  tokenizer.tokenize(text, tokens);
  return tokens.words.size() == 1 ? std::string(tokens.words[0]) : std::string();
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\xEF\xBB\xBF") == line.npos;
}

}  // namespace

Result<WordFilter> WordFilter::open(const WordFilterOptions& options) {
  WordFilter filter;
  Tokenizer tokenizer(options.tokenizer);
  for (const std::string& name : options.stop_words) STREAMVEC_RETURN_IF_ERROR(filter.add_stop_words(name, tokenizer));
  if (!options.lemmas.empty()) STREAMVEC_RETURN_IF_ERROR(filter.add_lemmas(options.lemmas, tokenizer));
  if (!options.stem.empty()) {
    STREAMVEC_ASSIGN_OR_RETURN(filter.stemmer_, Stemmer::open(options.stem));
  }
  return filter;
}

Status WordFilter::add_stop_words(const std::string& name, Tokenizer& tokenizer) {
  if (name == kEnglish) {
    for (const std::string_view word : english_stop_words()) stop_words_.emplace(word);
    return {};
  }
  STREAMVEC_ASSIGN_OR_RETURN(const WordFile file, read_word_file(name));
  bool any = false;
  for (const std::string_view line : file.lines) {
    std::string word = one_word(tokenizer, line);
    if (word.empty()) continue;
    any = true;
    stop_words_.insert(std::move(word));
  }
  if (!any)
    return error(Code::kInvalidArgument, name, ":1: none of ", file.lines.size(),
                 " lines is a word; one stop word a line is expected");
  return {};
}

Status WordFilter::add_lemmas(const std::string& path, Tokenizer& tokenizer) {
  STREAMVEC_ASSIGN_OR_RETURN(const WordFile file, read_word_file(path));
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string_view line = file.lines[i];
    if (is_blank(line)) continue;
    const size_t tab = line.find('\t');
    if (tab == line.npos || line.find('\t', tab + 1) != line.npos)
      return error(Code::kInvalidArgument, path, ":", i + 1, ": expected form<TAB>lemma, with one tab");
    std::string form = one_word(tokenizer, line.substr(0, tab));
    std::string lemma = one_word(tokenizer, line.substr(tab + 1));
    if (lemma.empty())
      return error(Code::kInvalidArgument, path, ":", i + 1, ": the lemma is not one word; expected form<TAB>lemma");
    if (!form.empty()) lemmas_.emplace(std::move(form), std::move(lemma));
  }
  if (lemmas_.empty())
    return error(Code::kInvalidArgument, path, ":1: no line has a word and its lemma; expected form<TAB>lemma");
  return {};
}

std::optional<std::string> WordFilter::apply(std::string_view word) const {
  if (stop_words_.contains(word)) return std::nullopt;
  if (const auto found = lemmas_.find(word); found != lemmas_.end()) {
    if (stop_words_.contains(found->second)) return std::nullopt;
    return found->second;
  }
  return stemmer_.has_value() ? stemmer_->stem(word) : std::string(word);
}

}  // namespace streamvec
