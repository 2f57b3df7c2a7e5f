// A page of HTML that needs nothing beside it: no script, no font, no picture from elsewhere. Its style sheet follows
// the reader's light or dark setting and prints.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace streamvec {

// What stands in a table. Text is escaped when the page is written.
struct Cell {
  Cell(std::string cell_text) : text(std::move(cell_text)) {}  // NOLINT: a text is a cell
  Cell(const char* cell_text) : text(cell_text) {}             // NOLINT
  Cell(std::string cell_text, std::string cell_kind) : text(std::move(cell_text)), kind(std::move(cell_kind)) {}

  std::string text;
  std::string kind = {};  // a class of the style sheet: "old" (figures of others), "bad", "best", "" plain
};

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;  // columns after the first `texts` are numbers and stand to the right
  size_t texts = 1;
};

// Parts come in the order in which they were added. All text is data: nothing in it becomes markup.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  void list(const std::vector<std::string>& items);
  // Pairs of a name and what it is.
  void facts(const std::vector<std::pair<std::string, std::string>>& facts);
  void table(const PageTable& table);
  // An <svg> element as svg_of() makes it: the only markup that is taken as it is.
  void figure(const std::string& svg);
  void code(std::string_view text);

  std::string html() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace streamvec
