// The title of an article out of what a page calls itself.
#pragma once

#include <string>
#include <string_view>

namespace streamvec {

// `og` is og:title, `title` the title element, `heading` the first h1; each may be "". The heading is taken when one of
// the others holds it (they add the site's name to it); otherwise og, then title, each without `site` and without a
// last or first part that looks like a site's name; otherwise the heading.
std::string choose_title(std::string_view og, std::string_view title, std::string_view heading, std::string_view site);

// Whether two pieces of text are the same but for case (ASCII), white space and punctuation.
bool same_words(std::string_view a, std::string_view b);

}  // namespace streamvec
