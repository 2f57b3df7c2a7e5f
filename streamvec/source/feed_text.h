// Small matters of text in feeds. Private to feed_document.cc and feed_xml.cc.
#pragma once

#include <string>
#include <string_view>

namespace streamvec::feed {

// XML that feeds' makers took for well-formed, made so: text before the first tag and the XML declaration (the bytes
// are UTF-8 by now) are left out, HTML's entities become characters, other stray "&" and "<" are escaped, control
// characters become blanks. CDATA sections and comments stay as they are.
std::string repaired_xml(std::string_view utf8);

// Tags taken out, character references decoded, runs of blanks made one.
std::string plain_text(std::string_view html);
// Plain text as HTML: & < > are escaped.
void append_escaped(std::string_view text, std::string& html);

std::string_view trimmed(std::string_view text);

// `reference` seen from `base` (RFC 3986, 5.2); the reference itself when the base is no absolute address.
std::string resolve_url(std::string_view base, std::string_view reference);

}  // namespace streamvec::feed
