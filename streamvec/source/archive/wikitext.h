// The text of a wiki page: MediaWiki's markup taken out.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace streamvec {

// Goes: templates {{...}}, tables {|...|}, references, galleries, formulas and program text, comments, links to files
// and categories, links to the page in other languages, addresses, magic words, emphasis. Stays: paragraphs, headings
// and list items, a line each; a link's label; what stands between tags; <nowiki> as it is. Character references are
// decoded. A construct that is never closed is text, as MediaWiki has it.
// One pass: time and memory are linear in the page, whatever is nested in it; beyond 200 levels brackets are text.
// Not thread-safe (it keeps scratch memory).
class WikiText {
 public:
  WikiText();
  // Names of namespaces whose links are not part of the text ("Datei", "분류"), beside the English ones.
  void drop_links_to(std::string_view space) { dropped_.insert(lower(space)); }

  // Replaces what `out` holds.
  void extract(std::string_view wikitext, std::string& out);

 private:
  enum class Kind { kTemplate, kTable, kLink, kAddress };
  struct Open {
    Kind kind;
    size_t out_size;  // how much text there was before it
    bool dropped = false;
  };

  static std::string lower(std::string_view text);
  void begin_line();
  bool step();
  bool open(Kind kind, size_t mark_size);
  bool close_template();
  bool close_table();
  void begin_link();
  bool close_link();
  bool is_dropped_link(std::string_view target) const;
  void external_link();
  void skip_address();
  void tag();
  bool skip_element(std::string_view name);
  void literal(std::string_view name);
  void apostrophes();
  void reference();
  bool magic_word();
  void newline();
  bool inside(Kind kind) const { return !open_.empty() && open_.back().kind == kind; }
  std::string_view rest() const { return text_.substr(at_); }
  void tidy(std::string& out) const;

  std::set<std::string> dropped_;
  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Open> open_;
  int tables_ = 0, templates_ = 0;               // how many of open_ are such
  std::set<std::string, std::less<>> unclosed_;  // elements whose end does not come any more
};

}  // namespace streamvec
