#include "streamvec/report/page.h"

#include "streamvec/report/markup.h"

namespace streamvec {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2230; --faint: #5d6778; --rule: #d9dee7; --shade: #f4f6f9;
  --bad: #b3261e; --best: #176b3a;
  --c0: #2f6fb5; --c1: #d9822b; --c2: #2e8b57; --c3: #b0413e; --c4: #7b5ea7; --c5: #8a6d3b; --c6: #c2569b; --c7: #8893a5; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e8ef; --faint: #9aa5b6; --rule: #2e3643;
  --shade: #1c222c; --bad: #ff8a80; --best: #7bd8a0;
  --c0: #6ea8e6; --c1: #f0a75e; --c2: #63c08c; --c3: #e6807c; --c4: #b39ae0; --c5: #c7a970; --c6: #ea8cc6; --c7: #7f8a9c; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 64rem; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--rule); }
p, ul { max-width: 48rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 1rem 0; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { color: var(--faint); font-weight: 600; vertical-align: bottom; white-space: normal; }
th.text, td.text { text-align: left; }
tbody tr:hover { background: var(--shade); }
td.old { color: var(--faint); }
td.bad { color: var(--bad); }
td.best { color: var(--best); font-weight: 600; }
figure { margin: 1.6rem 0; }
svg { display: block; width: 100%; max-width: 860px; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .plot-title { font-size: 14px; font-weight: 600; }
svg .tick, svg .label, svg .value { fill: var(--faint); font-size: 11px; }
svg .name { font-size: 11.5px; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .axis { stroke: var(--faint); stroke-width: 1; }
svg .level { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
svg .curve { fill: none; stroke-width: 1.8; }
svg .dashed { stroke-dasharray: 5 4; }
pre { background: var(--shade); padding: .7rem .9rem; overflow-x: auto; font-size: 12.5px; border-radius: 4px; }
)css";

constexpr int kColours = 8;

std::string style() {
  std::string css(kStyle);
  for (int i = 0; i < kColours; ++i) {
    const std::string n = std::to_string(i);
    css += "svg .bar.c" + n + " { fill: var(--c" + n + "); }\nsvg .curve.c" + n + " { stroke: var(--c" + n + "); }\n";
  }
  return css;
}

// <tag class="...">text</tag>
std::string element(const std::string& tag, std::string_view text, const std::string& kind = "") {
  const std::string attribute = kind.empty() ? "" : " class=\"" + escaped(kind) + "\"";
  return "<" + tag + attribute + ">" + escaped(text) + "</" + tag + ">";
}

}  // namespace

void Page::heading(std::string_view text) {
  body_ += element("h2", text) + "\n";
}

void Page::paragraph(std::string_view text) {
  body_ += element("p", text) + "\n";
}

void Page::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += element("li", item) + "\n";
  body_ += "</ul>\n";
}

void Page::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  body_ += "<dl>\n";
  for (const auto& [name, what] : facts) body_ += element("dt", name) + element("dd", what) + "\n";
  body_ += "</dl>\n";
}

void Page::table(const PageTable& table) {
  body_ += "<div class=\"scroll\"><table>\n<thead><tr>";
  for (size_t i = 0; i < table.head.size(); ++i) body_ += element("th", table.head[i], i < table.texts ? "text" : "");
  body_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    body_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      std::string kind = i < table.texts ? "text" : "";
      if (!row[i].kind.empty()) kind += (kind.empty() ? "" : " ") + row[i].kind;
      body_ += element("td", row[i].text, kind);
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody>\n</table></div>\n";
}

void Page::figure(const std::string& svg) {
  body_ += "<figure>\n" + svg + "</figure>\n";
}

void Page::code(std::string_view text) {
  body_ += "<pre>" + escaped(text) + "</pre>\n";
}

std::string Page::html() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         element("title", title_) + "\n<style>" + style() + "</style>\n</head>\n<body>\n" + element("h1", title_) +
         "\n" + body_ + "</body>\n</html>\n";
}

}  // namespace streamvec
