#include "streamvec/source/newsroom/page.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/core/random.h"
#include "streamvec/source/newsroom/boilerplate.h"
#include "streamvec/source/newsroom/coinage.h"
#include "streamvec/source/newsroom/site.h"
#include "streamvec/source/planted_sentences.h"

namespace streamvec::newsroom {
namespace {

using namespace boilerplate;  // NOLINT: its pieces are all that is said here

constexpr size_t kDesigns = 4;

std::string_view pick(std::span<const std::string_view> texts, Random& random) {
  return texts[random.below(static_cast<uint32_t>(texts.size()))];
}

std::string element(std::string_view tag, std::string_view attributes, std::string_view content) {
  std::string text = "<" + std::string(tag);
  if (!attributes.empty()) (text += ' ') += attributes;
  return ((((text += '>') += content) += "</") += tag) += ">\n";
}

std::string anchor(const Link& link) {
  return "<a href=\"" + escaped(link.url) + "\">" + escaped(link.title) + "</a>";
}

// The story's text with the mark-up that editors put into it: a link, emphasis, entities in place of characters.
std::string marked_up(std::string text, Random& random) {
  text = escaped(text);
  if (random.below(3) == 0)
    for (const auto& [character, entity] : {std::pair("“", "&ldquo;"), {"”", "&rdquo;"}, {"—", "&#8212;"}})
      for (size_t at = 0; (at = text.find(character, at)) != std::string::npos;) text.replace(at, 3, entity);
  const size_t begin = text.find(' ', text.size() / 2);
  const size_t end = begin == std::string::npos ? begin : text.find_first_of(" .,&!", begin + 1);
  if (end == std::string::npos || random.below(2) == 0) return text;
  const bool link = random.below(2) == 0;
  text.insert(end, link ? "</a>" : "</em>");
  return text.insert(begin + 1, link ? "<a href=\"/topic\">" : "<em>");
}

// The story's paragraphs with what designs put between them; `paragraph` writes one.
template <typename Write>
std::string body_of(const Page& page, Random& random, std::string_view between, const Write& paragraph) {
  std::string text;
  for (size_t i = 0; i < page.story.paragraphs.size(); ++i) {
    if (i == 2) text += between;
    text += paragraph(marked_up(page.story.paragraphs[i], random));
  }
  return text;
}

std::string related_list(const Page& page, std::string_view heading) {
  std::string items;
  for (const Link& link : page.related) items += element("li", "", anchor(link));
  return element("div", "class=\"related-articles\"", element("h3", "", heading) + element("ul", "", items));
}

std::string comment_list(Random& random) {
  std::string items;
  for (int i = 0; i < 4; ++i)
    items +=
        element("li", "class=\"comment\"",
                element("span", "class=\"comment-author\"", pick(kAuthors, random)) +
                    element("p", "class=\"comment-body\"", escaped(pick(kComments, random))) +
                    "<a href=\"#reply\">Reply</a> <a href=\"#report\">Report abuse</a> <a href=\"#like\">Like</a>");
  return element("section", "id=\"comments\" class=\"comments\"",
                 element("h3", "", "Comments") + element("ol", "", items) +
                     "<p>Login to join the conversation. Comments are moderated, see our community guidelines.</p>");
}

std::string picture(Random& random) {
  return element("figure", "",
                 "<img src=\"/static/picture.jpg\" alt=\"photograph\">" +
                     element("figcaption", "", escaped(pick(kCaptions, random))));
}

std::string advertisement(Random& random) {
  return element("div", "class=\"ad advert sponsored\"",
                 "<a href=\"https://ads.example/click\">" + escaped(pick(kAdvertisements, random)) + "</a>");
}

std::string metadata(const Page& page, std::string_view author) {
  const nlohmann::json data = {{"@context", "https://schema.org"},
                               {"@type", "NewsArticle"},
                               {"headline", page.story.title},
                               {"datePublished", page.time},
                               {"mainEntityOfPage", page.url},
                               {"publisher", {{"@type", "Organization"}, {"name", kSiteName}}},
                               {"author", {{"@type", "Person"}, {"name", author}}}};
  return "<meta property=\"og:title\" content=\"" + escaped(page.story.title) + "\">\n" +
         "<meta property=\"og:type\" content=\"article\"><meta property=\"article:published_time\" content=\"" +
         page.time + "\">\n" + "<link rel=\"canonical\" href=\"" + escaped(page.url) + "\">\n" +
         element("script", "type=\"application/ld+json\"", json_text(data));
}

std::string html(const std::string& title, const std::string& in_head, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n" +
         element("head", "",
                 "<meta charset=\"utf-8\">\n" + element("title", "", title) + std::string(kHead) + in_head) +
         element("body", "", body) + "</html>\n";
}

std::string byline(const Page& page, std::string_view author) {
  return element("div", "class=\"byline\"",
                 "By <a href=\"/author\">" + std::string(author) + "</a> | Published <time datetime=\"" + page.time +
                     "\">" + page.time.substr(0, 10) + "</time> | Estimated reading duration: minutes");
}

std::string newspaper(const Page& page, std::string_view author, Random& random) {
  const std::string inside =
      element("aside", "class=\"inline-promo\"", advertisement(random) + std::string(kNewsletter));
  const std::string story = body_of(page, random, inside, [](const auto& text) { return element("p", "", text); });
  return std::string(kCookieBanner) + std::string(kMenu) +
         element("main", "",
                 element("article", "class=\"story\"",
                         element("h1", "", escaped(page.story.title)) + byline(page, author) + std::string(kShareBar) +
                             picture(random) + story) +
                     related_list(page, "Related coverage") + comment_list(random)) +
         std::string(kSidebar) + std::string(kFooter);
}

std::string blog(const Page& page, std::string_view author, Random& random) {
  const std::string story = body_of(page, random, advertisement(random),
                                    [](const auto& text) { return element("p", "class=\"has-text\"", text); });
  return std::string(kMenu) +
         element(
             "div", "id=\"content\" class=\"site-content\"",
             element("div", "class=\"post hentry\"",
                     element("h1", "class=\"entry-title\"", escaped(page.story.title)) + byline(page, author) +
                         element("div", "class=\"entry-content\"", picture(random) + story) + std::string(kShareBar) +
                         "<p class=\"tags\">Tagged: <a href=\"/tag/latest\">latest</a>, "
                         "<a href=\"/tag/exclusive\">exclusive</a></p>") +
                 std::string(kNewsletter) + related_list(page, "You might also like") + comment_list(random)) +
         std::string(kSidebar) + std::string(kFooter) + std::string(kCookieBanner);
}

std::string tables(const Page& page, std::string_view author, Random& random) {
  const std::string story = body_of(page, random, "<hr>\n", [](const auto& text) { return text + "<br><br>\n"; });
  return std::string(kTablesHeader) +
         element("td", "valign=\"top\"",
                 element("h1", "", escaped(page.story.title)) + element("i", "", "Reported by " + std::string(author)) +
                     "<br>\n" + story) +
         element("td", "width=\"200\" valign=\"top\"", advertisement(random) + related_list(page, "Elsewhere")) +
         std::string(kTablesFooter);
}

std::string application(const Page& page, std::string_view author, Random& random) {
  const auto wrapped = [](std::string_view test, const std::string& content) {
    return element("div", "data-testid=\"" + std::string(test) + "\" class=\"css-1x2y3z\"", content);
  };
  const std::string inside = wrapped("inline-recirculation", related_list(page, "Recommended for you")) +
                             wrapped("ad-slot", advertisement(random));
  const std::string story = body_of(page, random, inside, [&](const auto& text) {
    return wrapped("paragraph", element("p", "class=\"css-at9mc1\"", text));
  });
  return wrapped("app", wrapped("masthead", std::string(kMenu)) +
                            wrapped("headline", element("h1", "", escaped(page.story.title)) + byline(page, author)) +
                            wrapped("share-tools", std::string(kShareBar)) + wrapped("story-body", story) +
                            wrapped("comments", comment_list(random)) + wrapped("footer", std::string(kFooter)) +
                            wrapped("consent", std::string(kCookieBanner)));
}

// Runs of at least three letters, in lower case.
void add_words(std::string_view text, std::set<std::string>& words) {
  std::string word;
  for (const char c : std::string(text) + " ") {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower >= 'a' && lower <= 'z') {
      word += lower;
      continue;
    }
    if (word.size() >= 3) words.insert(word);
    word.clear();
  }
}

// Every word that a story can have.
std::set<std::string> story_words() {
  const planted::Lexicon& lexicon = planted::Lexicon::instance();
  std::set<std::string> words;
  const auto add = [&](const planted::Words& list) { words.insert(list.begin(), list.end()); };
  for (const planted::Words* list : {&lexicon.functions.words(), &lexicon.fillers.words()}) add(*list);
  for (const auto& list : lexicon.classes)
    for (const planted::Words* part : {&list.members.words(), &list.before, &list.after}) add(*part);
  for (const auto& relation : lexicon.relations) {
    for (const planted::Words& side : relation.sides) add(side);
    for (const auto& pair : relation.pairs) {
      add(pair.names);
      words.insert({pair.word[0], pair.word[1]});
    }
  }
  for (const ClassCoinage& list : coinage())
    for (const planted::Words* part : {&list.known, &list.coined, &list.unseen}) add(*part);
  for (const Truth::Change& change : truth().changes) words.insert(change.word);
  return words;
}

// What pages hold when their stories hold nothing.
std::set<std::string> make_boilerplate_words() {
  std::set<std::string> found, words;
  for (int64_t number = 0; number < 200; ++number)
    add_words(page_html({"", "", {number, "", {"", "", ""}}, {}}), found);
  const std::set<std::string> known = story_words();
  std::set_difference(found.begin(), found.end(), known.begin(), known.end(), std::inserter(words, words.end()));
  return words;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string page_html(const Page& page) {
  Random random(mix(static_cast<uint64_t>(page.story.number)));
  const std::string_view author = pick(kAuthors, random);
  constexpr decltype(&newspaper) kDesign[kDesigns] = {newspaper, blog, tables, application};
  const std::string body = kDesign[static_cast<uint64_t>(page.story.number) % kDesigns](page, author, random);
  return html(escaped(page.story.title) + " | " + std::string(kSiteName), metadata(page, author),
              body + std::string(kTracking));
}

std::string front_html(const std::vector<Link>& links) {
  std::string items;
  for (const Link& link : links) items += element("li", "", anchor(link));
  return html(std::string(kSiteName), "",
              std::string(kMenu) + element("main", "", element("ul", "class=\"headlines\"", items)) +
                  std::string(kFooter) + std::string(kTracking));
}

const std::set<std::string>& boilerplate_words() {
  static const std::set<std::string> words = make_boilerplate_words();
  return words;
}

}  // namespace streamvec::newsroom
