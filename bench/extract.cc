// How many MB/s of HTML does one core turn into articles?
// Run: bench_extract [FILE...]   (HTML in UTF-8; without files, pages that it makes itself)
// The pages it makes are like those of news sites: about 174 KB of HTML around 4.5 KB of text, most of it scripts,
// styles and attributes. All pages are gone through at least 5 times and for a second; the figures are the median and
// the range of the passes, in 10^6 bytes per second of processor time, so that a busy machine does not count.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "streamvec/core/random.h"
#include "streamvec/text/article.h"

namespace {

using streamvec::Article;
using streamvec::ArticleExtractor;
using streamvec::Random;

constexpr int kPages = 64;

size_t draw(Random& random, size_t count) {
  return static_cast<size_t>(random.below(static_cast<uint32_t>(count)));
}

std::string words(Random& random, size_t bytes) {
  static constexpr const char* kSyllables[] = {"ba",  "ro", "ti",  "men", "sol", "ka",
                                               "ver", "un", "dra", "le",  "ost", "pi"};
  std::string text;
  while (text.size() < bytes) {
    for (size_t i = 1 + draw(random, 3); i > 0; --i) text += kSyllables[draw(random, std::size(kSyllables))];
    text += draw(random, 12) == 0 ? ". " : draw(random, 10) == 0 ? ", " : " ";
  }
  return text;
}

// Code as minifiers leave it: short names, quotes, comparisons, markup inside strings.
std::string script(Random& random, size_t bytes) {
  static constexpr const char* kParts[] = {"function(e,t){",
                                           "return e.n<t.length&&",
                                           "\"<div class=\\\"x\\\">\"+",
                                           "a.push(",
                                           "{\"id\":",
                                           "},",
                                           "var r=",
                                           "null!=o?",
                                           ");",
                                           "'data-",
                                           "window.q=",
                                           "||[];"};
  std::string text = "<script>";
  while (text.size() < bytes) text += kParts[draw(random, std::size(kParts))] + std::to_string(draw(random, 100000));
  return text + "</script>\n";
}

std::string attributes(Random& random, const char* name) {
  std::string text = std::string(" class=\"") + name + "__" + std::to_string(draw(random, 90)) + " col-md-8 u-mt-2\"";
  text += " data-testid=\"" + std::string(name) + "-" + std::to_string(draw(random, 900000)) + "\"";
  text += " data-track='{\"pos\":" + std::to_string(draw(random, 40)) + ",\"zone\":\"main>list\"}' style=\"--w:33%\"";
  return text;
}

std::string cards(Random& random, size_t count, const char* name) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += "<li" + attributes(random, name) + "><a href=\"https://news.example/" +
            std::to_string(draw(random, 1000000)) + "?utm_source=home&amp;pos=" + std::to_string(i) + "\"" +
            attributes(random, "link") + "><svg width=\"24\"><path d=\"";
    for (size_t k = 0; k < 24; ++k)
      text += "M" + std::to_string(draw(random, 999)) + "," + std::to_string(draw(random, 999));
    text += "\"/></svg><span" + attributes(random, "label") + ">" + words(random, 30) + "</span></a></li>\n";
  }
  return text;
}

std::string page(uint64_t seed) {
  Random random(seed);
  std::string html = "<!DOCTYPE html><html lang=\"en\"><head><title>" + words(random, 40) + "| Site</title>";
  html += "<style>" + script(random, 22'000).substr(8) + "</style>" + script(random, 30'000);
  html += "</head><body><header><nav><ul>" + cards(random, 40, "menu") + "</ul></nav></header><main><article><h1>" +
          words(random, 50) + "</h1><div class=\"article-body\">";
  for (int i = 0; i < 12; ++i)
    html += "<p" + attributes(random, "text") + ">" + words(random, 375) + "<a href=\"/t\">" + words(random, 12) +
            "</a>.</p>\n" + script(random, 900) + "<!-- ad slot " + std::to_string(i) + " --><div" +
            attributes(random, "slot") + "></div>";
  html += "</div></article><aside><ul>" + cards(random, 50, "related") + "</ul></aside></main><footer><ul>" +
          cards(random, 30, "foot") + "</ul></footer>" + script(random, 21'000) + "</body></html>";
  return html;
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> pages;
  for (int i = 1; i < argc; ++i) {
    pages.push_back(read_file(argv[i]));
    if (!pages.back().empty()) continue;
    std::fprintf(stderr, "%s is not there, not readable or empty\n", argv[i]);
    return 1;
  }
  for (int i = 0; i < kPages && argc == 1; ++i) pages.push_back(page(static_cast<uint64_t>(i) + 1));
  double bytes = 0, text = 0, total = 0;
  for (const std::string& html : pages) bytes += static_cast<double>(html.size());
  ArticleExtractor extractor;
  Article article;
  std::vector<double> speeds;
  while (speeds.size() < 5 || total < 1.0) {
    text = 0;
    const std::clock_t start = std::clock();
    for (const std::string& html : pages) {
      extractor.extract(html, article);
      text += static_cast<double>(article.text.size());
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    total += seconds;
    speeds.push_back(bytes / 1e6 / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  const auto count = static_cast<double>(pages.size());
  std::printf("%zu pages of %.1f KB, %.1f KB of text each: %.0f MB/s (%.0f to %.0f, %zu passes), %.0f pages/s\n",
              pages.size(), bytes / count / 1e3, text / count / 1e3, speeds[speeds.size() / 2], speeds.front(),
              speeds.back(), speeds.size(), speeds[speeds.size() / 2] * 1e6 / (bytes / count));
  return 0;
}
