// Wiki dumps (source/archive/wikipedia_source.h) and wiki markup (wikitext.h): texts of dumps are UTF-8 when the dump
// is, reading on after any document gives those that followed it, and markup only ever gets shorter.
#include "fuzz/archive_reading.h"
#include "fuzz/compressed.h"
#include "streamvec/source/archive/wikipedia_source.h"
#include "streamvec/source/archive/wikitext.h"

namespace streamvec {

FuzzStart fuzz_start() {
  const std::string head =
      "<mediawiki><siteinfo><namespaces><namespace key=\"6\">File</namespace><namespace key=\"14\">분류</namespace>"
      "</namespaces></siteinfo>\n";
  const std::string page =
      "<page><title>Seoul</title><ns>0</ns><id>7</id><revision><id>8</id><timestamp>2024-05-01T00:00:00Z</timestamp>"
      "<text bytes=\"9\" xml:space=\"preserve\">'''Seoul''' is the [[capital]] of [[South Korea|Korea]]"
      "&lt;ref&gt;x&lt;/ref&gt;. {{Infobox|a={{b}}}} It has &amp;nbsp; rivers.\n== History ==\n* [http://a b]\n{| "
      "class\n"
      "|-\n| x\n|}\n[[File:a.png|thumb|c [[d]]]] [[분류:도시]]</text></revision></page>\n";
  const std::string redirect = "<page><title>R</title><ns>0</ns><id>9</id><redirect title=\"S\"/></page>\n";
  return {.seeds = {head + page + redirect + page + "</mediawiki>", page + page, gzip_of(head + page) + gzip_of(page),
                    bzip2_of(head) + bzip2_of(page),
                    "'''b''' [[a|b]] {{t|{{u}}}} <nowiki>[[x]]</nowiki> __TOC__ <!-- c -->",
                    "{|\n|{{a|[[b|{{c}}\n|}\n<ref name=x/><ref>y</ref> &lt;math&gt; &#x41; ----\n#;:*"},
          .words = {"<page>", "</page>",   "<text>", "</text>", "<title>",  "<ns>0</ns>", "{{",       "}}",     "[[",
                    "]]",     "{|",        "|}",     "''",      "<nowiki>", "</nowiki>",  "<ref>",    "</ref>", "<!--",
                    "-->",    "__NOTOC__", "&lt;",   "File:",   "\n|-",     "http://",    "<gallery>"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static WikiText used;
  std::string text, again;
  used.extract(bytes, text);
  WikiText().extract(bytes, again);
  STREAMVEC_CHECK(text == again);
  STREAMVEC_CHECK(text.size() <= bytes.size() + 1);
  if (is_utf8(bytes)) {
    STREAMVEC_CHECK(is_utf8(text));
    check_archive<WikipediaSource>("wikipedia", bytes);
  }
  return 0;
}
