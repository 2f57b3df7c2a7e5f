#include "streamvec/source/feed_xml.h"

#include <expat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "streamvec/source/feed_names.h"
#include "streamvec/source/feed_text.h"
#include "streamvec/source/time_text.h"

namespace streamvec::feed {
namespace {

double number_of(std::string_view text) {
  double value = 0;
  text = trimmed(text);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double period_seconds(std::string_view name) {
  constexpr std::pair<std::string_view, double> kPeriods[] = {
      {"hourly", 3600}, {"daily", 86400}, {"weekly", 604800}, {"monthly", 2592000}, {"yearly", 31536000}};
  for (const auto& [known, seconds] : kPeriods)
    if (trimmed(name) == known) return seconds;
  return 0;
}

// One document's way through expat. Text is collected for one field at a time; elements inside it become markup again.
class FeedParser {
 public:
  FeedParser();
  Result<FeedDocument> parse(const std::string& xml);

 private:
  // One open element.
  struct Level {
    Space space = Space::kOther;
    std::string name;
    std::string base;     // xml:base as resolved so far
    size_t bindings = 0;  // how many were there before it
  };
  enum class Text { kPlain, kHtml, kXhtml };  // what a field's characters are

  void start(const char* name, const char** attributes);
  void end();
  void text(std::string_view characters);

  void open_level(std::string_view name, const char** attributes);
  Space space_of(std::string_view prefix) const;
  bool check_root();
  bool opens_entry() const;
  void open_entry(const char** attributes);
  void open_field(const char** attributes);
  void open_markup(std::string_view name, const char** attributes);
  void atom_link(const char** attributes);
  void close_field();
  void close_entry();
  void entry_field(const std::string& value);
  void feed_field(const std::string& value);
  void append(std::string_view text);
  void stop(const std::string& why);
  std::string attribute(const char** attributes, std::string_view wanted) const;

  std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser_;
  FeedDocument document_;
  std::string stopped_;  // why, when we stopped it
  std::vector<Level> levels_;
  std::vector<std::pair<std::string, Space>> bindings_;  // prefixes declared, innermost last

  bool in_entry_ = false;
  size_t entry_depth_ = 0;  // how many levels there are when it is the innermost
  FeedEntry entry_;
  bool entry_published_ = false, url_is_html_ = false, guid_is_url_ = false;

  Field field_ = Field::kNone;
  size_t field_depth_ = 0;
  Text field_text_ = Text::kHtml;
  std::string value_;
  double frequency_ = 1, period_s_ = 0;
};

FeedParser::FeedParser() : parser_(XML_ParserCreate("UTF-8"), &XML_ParserFree) {
  XML_Parser parser = parser_.get();
  XML_SetUserData(parser, this);
  XML_SetElementHandler(
      parser,
      [](void* self, const char* name, const char** attributes) {
        static_cast<FeedParser*>(self)->start(name, attributes);
      },
      [](void* self, const char*) { static_cast<FeedParser*>(self)->end(); });
  XML_SetCharacterDataHandler(parser, [](void* self, const char* text, int size) {
    static_cast<FeedParser*>(self)->text({text, static_cast<size_t>(size)});
  });
  XML_SetEntityDeclHandler(parser, [](void* self, const char* name, int, const char*, int, const char*, const char*,
                                      const char*, const char*) {
    static_cast<FeedParser*>(self)->stop("it declares the entity \"" + std::string(name).substr(0, 40) + "\"");
  });
}

Result<FeedDocument> FeedParser::parse(const std::string& xml) {
  const XML_Status status = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), 1);
  const bool after_root = XML_GetErrorCode(parser_.get()) == XML_ERROR_JUNK_AFTER_DOC_ELEMENT;
  const bool complete = status == XML_STATUS_OK || (after_root && stopped_.empty());
  if (!complete && document_.entries.empty())
    return error(Code::kInvalidArgument, "not a feed or sitemap: ",
                 !stopped_.empty() ? stopped_ : XML_ErrorString(XML_GetErrorCode(parser_.get())), " (line ",
                 XML_GetCurrentLineNumber(parser_.get()), ")");
  if (document_.poll_after_s == 0) document_.poll_after_s = period_s_ / (frequency_ >= 1 ? frequency_ : 1);
  return std::move(document_);
}

void FeedParser::stop(const std::string& why) {
  if (stopped_.empty()) stopped_ = why;
  XML_StopParser(parser_.get(), XML_FALSE);
}

std::string FeedParser::attribute(const char** attributes, std::string_view wanted) const {
  for (; attributes[0] != nullptr; attributes += 2)
    if (attributes[0] == wanted) return attributes[1];
  return "";
}

Space FeedParser::space_of(std::string_view prefix) const {
  for (size_t i = bindings_.size(); i > 0; --i)
    if (bindings_[i - 1].first == prefix) return bindings_[i - 1].second;
  return space_of_prefix(prefix);
}

void FeedParser::open_level(std::string_view name, const char** attributes) {
  Level level;
  level.bindings = bindings_.size();
  if (!levels_.empty()) level.base = levels_.back().base;
  for (const char** each = attributes; each[0] != nullptr; each += 2) {
    const std::string_view key = each[0];
    if (key == "xmlns") bindings_.emplace_back("", space_of_uri(each[1]));
    if (key.starts_with("xmlns:")) bindings_.emplace_back(key.substr(6), space_of_uri(each[1]));
    if (key == "xml:base") level.base = resolve_url(level.base, each[1]).substr(0, kFieldBytesMax);
  }
  const size_t colon = name.find(':');
  level.space = space_of(colon == std::string_view::npos ? "" : name.substr(0, colon));
  level.name = colon == std::string_view::npos ? name : name.substr(colon + 1);
  levels_.push_back(std::move(level));
}

// False for a root that is none of ours.
bool FeedParser::check_root() {
  Level& root = levels_.back();
  using Kind = FeedDocument::Kind;
  constexpr std::pair<std::string_view, Kind> kRoots[] = {
      {"rss", Kind::kFeed},     {"RDF", Kind::kFeed},       {"feed", Kind::kFeed},
      {"channel", Kind::kFeed}, {"urlset", Kind::kSitemap}, {"sitemapindex", Kind::kSitemapIndex}};
  const auto* found =
      std::find_if(std::begin(kRoots), std::end(kRoots), [&](const auto& known) { return known.first == root.name; });
  if (found == std::end(kRoots)) {
    stop("its root is <" + root.name.substr(0, 40) + ">");
    return false;
  }
  document_.kind = found->second;
  // A default namespace of the maker's own does not make it less a feed.
  root.space = root.name == "feed" ? Space::kAtom : Space::kPlain;
  bindings_.emplace_back("", root.space);
  return true;
}

bool FeedParser::opens_entry() const {
  const Level& level = levels_.back();
  if (levels_.size() < 2 || levels_.size() > 3) return false;
  if (level.space == Space::kAtom) return level.name == "entry";
  if (level.space != Space::kPlain) return false;
  if (document_.kind == FeedDocument::Kind::kSitemap) return level.name == "url";
  if (document_.kind == FeedDocument::Kind::kSitemapIndex) return level.name == "sitemap";
  return level.name == "item";
}

void FeedParser::open_entry(const char** attributes) {
  in_entry_ = true;
  entry_depth_ = levels_.size();
  entry_ = {};
  entry_published_ = url_is_html_ = guid_is_url_ = false;
  entry_.id = attribute(attributes, "rdf:about").substr(0, kFieldBytesMax);
}

void FeedParser::start(const char* name, const char** attributes) {
  if (!stopped_.empty()) return;
  if (levels_.size() >= kDepthMax) return stop("elements are nested deeper than " + std::to_string(kDepthMax));
  open_level(name, attributes);
  if (levels_.size() == 1) {
    (void)check_root();
  } else if (field_ != Field::kNone) {
    open_markup(name, attributes);
  } else if (!in_entry_ && opens_entry()) {
    open_entry(attributes);
  } else {
    open_field(attributes);
  }
}

// Which text is wanted next, if this element holds any. Only children count: an entry's <source> has a title too.
void FeedParser::open_field(const char** attributes) {
  const Level& level = levels_.back();
  const bool of_entry = in_entry_ && (levels_.size() == entry_depth_ + 1 || level.space == Space::kNews);
  const bool of_feed = !in_entry_ && levels_.size() <= 3 && (levels_.size() == 2 || levels_[1].name == "channel");
  if (!of_entry && !of_feed) return;
  if (level.name == "link" && level.space == Space::kAtom) return atom_link(attributes);
  field_ = of_entry ? entry_field_of(level.space, level.name) : feed_field_of(level.space, level.name);
  if (field_ == Field::kNone) return;
  field_depth_ = levels_.size();
  value_.clear();
  const std::string type = attribute(attributes, "type");
  field_text_ = Text::kHtml;
  if (level.space == Space::kAtom && field_ != Field::kNone) {
    const bool html = type == "html" || type.starts_with("text/html");
    field_text_ = html ? Text::kHtml : type == "xhtml" || type.ends_with("+xml") ? Text::kXhtml : Text::kPlain;
    // Content that lies elsewhere, or is an image in base64, is no text.
    const bool foreign =
        !attribute(attributes, "src").empty() ||
        (type.find('/') != std::string::npos && !html && !type.starts_with("text/") && !type.ends_with("xml"));
    if (foreign) field_ = Field::kNone;
  }
  if (level.name == "guid") guid_is_url_ = attribute(attributes, "isPermaLink") != "false";
}

// An element inside of a field: markup of the text.
void FeedParser::open_markup(std::string_view name, const char** attributes) {
  if (field_ != Field::kSummary && field_ != Field::kTitle) return;
  std::string tag = "<" + std::string(name.substr(name.find(':') == std::string_view::npos ? 0 : name.find(':') + 1));
  for (; attributes[0] != nullptr; attributes += 2) {
    if (std::strncmp(attributes[0], "xmlns", 5) == 0) continue;
    tag += " " + std::string(attributes[0]) + "=\"";
    append_escaped(attributes[1], tag);
    std::replace(tag.begin() + static_cast<std::ptrdiff_t>(tag.rfind("=\"") + 2), tag.end(), '"', '\'');
    tag += '"';
  }
  append(tag + ">");
}

void FeedParser::atom_link(const char** attributes) {
  const std::string href = resolve_url(levels_.back().base, attribute(attributes, "href"));
  const std::string rel = attribute(attributes, "rel"), type = attribute(attributes, "type");
  if (href.empty() || href.size() > kFieldBytesMax) return;
  if (!in_entry_) {
    if (rel == "next" || (rel == "prev-archive" && document_.next.empty())) document_.next = href;
    return;
  }
  if (!rel.empty() && rel != "alternate") return;
  const bool html = type.empty() || type.find("html") != std::string::npos;
  if (!entry_.url.empty() && (url_is_html_ || !html)) return;
  entry_.url = href;
  url_is_html_ = html;
}

void FeedParser::append(std::string_view text) {
  if (value_.size() + text.size() <= kFieldBytesMax) value_ += text;
}

void FeedParser::text(std::string_view characters) {
  if (field_ == Field::kNone || !stopped_.empty()) return;
  const bool inside_markup = levels_.size() > field_depth_;
  const bool is_html = field_ == Field::kSummary || field_ == Field::kTitle;
  if (!is_html || (field_text_ == Text::kHtml && !inside_markup)) return append(characters);
  std::string escaped;
  append_escaped(characters, escaped);
  append(escaped);
}

void FeedParser::end() {
  if (!stopped_.empty() || levels_.empty()) return;
  if (field_ != Field::kNone && levels_.size() == field_depth_)
    close_field();
  else if (field_ == Field::kSummary || field_ == Field::kTitle)
    append("</" + levels_.back().name + ">");
  if (in_entry_ && levels_.size() == entry_depth_) close_entry();
  bindings_.resize(levels_.back().bindings);
  levels_.pop_back();
}

void FeedParser::close_field() {
  const std::string value(trimmed(value_));
  if (in_entry_)
    entry_field(value);
  else
    feed_field(value);
  field_ = Field::kNone;
}

void FeedParser::entry_field(const std::string& value) {
  switch (field_) {
    case Field::kTitle:
      if (entry_.title.empty()) entry_.title = plain_text(value);
      break;
    case Field::kLink:
      if (entry_.url.empty() && !value.empty()) entry_.url = resolve_url(levels_.back().base, value);
      break;
    case Field::kId:
      if (entry_.id.empty() || levels_.back().space != Space::kPlain) entry_.id = value;
      break;
    case Field::kSummary:
      if (value.size() > entry_.summary_html.size()) entry_.summary_html = value;
      break;
    case Field::kPublished:
    case Field::kChanged: {
      const bool published = field_ == Field::kPublished;
      const Result<int64_t> time = parse_time(value);
      if (!time.ok() || (entry_.time_s != 0 && (entry_published_ || !published))) break;
      entry_.time_s = *time;
      entry_published_ = published;
      break;
    }
    default:
      break;
  }
}

void FeedParser::feed_field(const std::string& value) {
  if (field_ == Field::kTitle && document_.title.empty()) document_.title = plain_text(value);
  if (field_ == Field::kTtl) document_.poll_after_s = std::clamp(number_of(value), 0.0, 1e6) * 60;
  if (field_ == Field::kPeriod) period_s_ = period_seconds(value);
  if (field_ == Field::kFrequency) frequency_ = number_of(value);
}

void FeedParser::close_entry() {
  in_entry_ = false;
  if (entry_.url.empty() && guid_is_url_ && entry_.id.starts_with("http")) entry_.url = entry_.id;
  if (entry_.id.empty()) entry_.id = entry_.url;
  if (entry_.url.empty() && entry_.title.empty() && entry_.summary_html.empty()) return;
  document_.entries.push_back(std::move(entry_));
  if (document_.entries.size() >= kEntriesMax) stop("more than " + std::to_string(kEntriesMax) + " entries");
}

}  // namespace

Result<FeedDocument> parse_feed_xml(std::string_view utf8) {
  return FeedParser().parse(repaired_xml(utf8));
}

}  // namespace streamvec::feed
