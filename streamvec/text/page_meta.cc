#include "streamvec/text/page_meta.h"

#include <algorithm>

#include "streamvec/text/html_text.h"
#include "streamvec/text/iso_time.h"
#include "streamvec/text/json_scan.h"
#include "streamvec/text/title_text.h"

namespace streamvec {
namespace {

constexpr size_t kValueMax = 4096;  // bytes of an attribute that could be a title, a date or an address

std::string lower(std::string_view text) {
  std::string out(text.substr(0, 64));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return out;
}

std::string value_of(const HtmlToken& start, Attribute attribute) {
  return flat_text(start.value(attribute).substr(0, kValueMax));
}

template <size_t N>
bool is_any(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kPublishedNames[] = {"article:published_time",
                                                "og:article:published_time",
                                                "article:published",
                                                "datepublished",
                                                "parsely-pub-date",
                                                "sailthru.date",
                                                "pubdate",
                                                "publishdate",
                                                "publish-date",
                                                "publish_date",
                                                "publication_date",
                                                "published_time",
                                                "dc.date.issued",
                                                "dcterms.issued",
                                                "citation_date",
                                                "citation_publication_date",
                                                "article_date_original",
                                                "rnews:datepublished",
                                                "article.published",
                                                "og:regdate"};
constexpr std::string_view kDateNames[] = {
    "date",    "dc.date",     "dcterms.date", "dcterms.created", "dc.date.created", "article.created",
    "created", "datecreated", "creation_date"};
constexpr std::string_view kModifiedNames[] = {
    "article:modified_time", "og:updated_time", "datemodified", "last-modified",
    "dcterms.modified",      "revised",         "lastmod"};

}  // namespace

void PageMeta::add(const HtmlToken& start) {
  const std::string_view item = start.value(Attribute::kItemprop);
  if (!item.empty() && lower(item) == "datepublished") {
    add_date(kItemPublished, start.value(Attribute::kContent));
    add_date(kItemPublished, start.value(Attribute::kDatetime));
  }
  switch (start.tag) {
    case Tag::kHtml:
      if (language_.empty()) language_ = lower(start.value(Attribute::kLang));
      break;
    case Tag::kMeta:
      add_meta(start);
      break;
    case Tag::kLink:
      add_link(start);
      break;
    case Tag::kTitle:
      if (title_.empty()) title_ = flat_text(start.text.substr(0, kValueMax));
      break;
    case Tag::kTime:
      add_date(kTimeElement, start.value(Attribute::kDatetime));
      break;
    case Tag::kScript:
      if (lower(start.value(Attribute::kType)) == "application/ld+json") add_json(start.text);
      break;
    default:
      break;
  }
}

void PageMeta::add_meta(const HtmlToken& start) {
  std::string name = lower(start.value(Attribute::kProperty));
  if (name.empty()) name = lower(start.value(Attribute::kName));
  if (name.empty()) return;
  const std::string_view content = start.value(Attribute::kContent);
  if (name == "og:title" || (name == "twitter:title" && og_title_.empty())) {
    og_title_ = value_of(start, Attribute::kContent);
  } else if (name == "og:site_name") {
    site_name_ = value_of(start, Attribute::kContent);
  } else if (name == "og:url") {
    og_url_ = value_of(start, Attribute::kContent);
  } else if (name == "og:locale") {
    locale_ = lower(content);
  } else if (is_any(name, kPublishedNames)) {
    add_date(kMetaPublished, content);
  } else if (is_any(name, kDateNames)) {
    add_date(kMetaDate, content);
  } else if (is_any(name, kModifiedNames)) {
    add_date(kModified, content);
  }
}

void PageMeta::add_link(const HtmlToken& start) {
  if (canonical_.empty() && lower(start.value(Attribute::kRel)) == "canonical")
    canonical_ = value_of(start, Attribute::kHref);
}

void PageMeta::add_json(std::string_view json) {
  if (dates_[kJsonPublished] == 0) add_date(kJsonPublished, json_string(json, "datePublished"));
  if (dates_[kModified] == 0) add_date(kModified, json_string(json, "dateModified"));
  const std::string_view body = json_string(json, "articleBody");
  if (body.size() > article_body_.size()) article_body_ = json_text(body);
}

void PageMeta::add_date(DateRank rank, std::string_view text) {
  if (dates_[rank] != 0 || text.empty()) return;
  dates_[rank] = parse_iso_time(text).value_or(0);
}

int64_t PageMeta::time_s() const {
  for (const int64_t date : dates_)
    if (date != 0) return date;
  return 0;
}

std::string PageMeta::language() const {
  const std::string& full = language_.empty() ? locale_ : language_;
  size_t length = 0;
  while (length < full.size() && full[length] >= 'a' && full[length] <= 'z') ++length;
  return length == 2 || length == 3 ? full.substr(0, length) : std::string();
}

std::string PageMeta::title(std::string_view heading) const {
  return choose_title(og_title_, title_, heading, site_name_);
}

}  // namespace streamvec
