// Bytes of any encoding to UTF-8: what a page, a feed or a text file is read as.
#pragma once

#include <string>
#include <string_view>

namespace streamvec {

// `bytes` as UTF-8: a view of `bytes` when they are that already, else of `scratch`; without a byte order mark. The
// encoding is the first of these that names one:
// 1. a byte order mark (UTF-8, UTF-16, UTF-32);
// 2. `declared`, a charset ("euc-kr") or a whole Content-Type ("text/html; charset=euc-kr"), "" when there is none;
// 3. the document itself: <?xml encoding="..."?>, UTF-16 by its "<?x", and when `html` a <meta> in the first 1,024
//    bytes;
// 4. what it looks like: UTF-8 when at most one sequence in ten is broken, else ICU's guess, else windows-1252.
// Names are the web's (WHATWG Encoding Standard), read as browsers do: "iso-8859-1" is windows-1252, "euc-kr" and
// "ks_c_5601-1987" are windows-949, "gb2312" is GB 18030; punctuation and case do not matter. A name that is unknown
// (or iso-8859-16, which ICU lacks) counts as none. Never fails: each ill-formed or unassigned sequence becomes U+FFFD.
// Linear time. Thread-safe.
std::string_view to_utf8(std::string_view bytes, std::string_view declared, bool html, std::string& scratch);

}  // namespace streamvec
