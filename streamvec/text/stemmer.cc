#include "streamvec/text/stemmer.h"

#include <libstemmer.h>

namespace streamvec {

void Stemmer::Delete::operator()(sb_stemmer* stemmer) const {
  sb_stemmer_delete(stemmer);
}

Result<Stemmer> Stemmer::open(const std::string& language) {
  std::string name = language;
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  Stemmer result;
  result.stemmer_.reset(sb_stemmer_new(name.c_str(), "UTF_8"));
  if (result.stemmer_ == nullptr)
    return error(Code::kInvalidArgument, "no stemmer for \"", language, "\"; known are ", stemmer_languages());
  return result;
}

std::string Stemmer::stem(std::string_view word) const {
  const std::lock_guard lock(*mutex_);
  const sb_symbol* stem =
      sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()), static_cast<int>(word.size()));
  const int length = stem == nullptr ? 0 : sb_stemmer_length(stemmer_.get());
  if (length <= 0) return std::string(word);
  return {reinterpret_cast<const char*>(stem), static_cast<size_t>(length)};
}

std::string stemmer_languages() {
  std::string names;
  for (const char** name = sb_stemmer_list(); *name != nullptr; ++name) {
    if (!names.empty()) names += ' ';
    names += *name;
  }
  return names;
}

}  // namespace streamvec
