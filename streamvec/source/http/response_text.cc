#include "streamvec/source/http/response_text.h"

#include <algorithm>
#include <cctype>

#include "streamvec/source/piece.h"
#include "streamvec/text/charset.h"
#include "streamvec/text/html_entities.h"
#include "streamvec/text/html_scanner.h"
#include "streamvec/text/html_text.h"

namespace streamvec {
namespace {

enum class Content { kHtml, kPlain, kOther };

// "text/html" of "Text/HTML; charset=x".
std::string media_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  std::erase_if(type, [](char c) { return c == ' ' || c == '\t'; });
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

Content content_of(const std::string& type, std::string_view body) {
  if (type == "text/html" || type == "application/xhtml+xml" || type == "application/xml" || type == "text/xml")
    return Content::kHtml;
  if (type == "text/plain" || type == "text/markdown") return Content::kPlain;
  if (!type.empty() && type != "application/octet-stream") return Content::kOther;
  const size_t first = body.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && body[first] == '<') return Content::kHtml;
  return check_text(body.substr(0, kPieceBytes), "").ok() ? Content::kPlain : Content::kOther;
}

void join(const std::string& title, std::string_view text, std::string& out) {
  out.clear();
  if (!title.empty()) (out += title) += '\n';
  if (!text.empty()) out += text;
  if (!out.empty() && out.back() != '\n') out += '\n';
}

// A page may give itself another name, but only one of its own host, and not that of the front page: sites that name
// the front page on every page would have one article.
Url own_name(const Url& url, const std::string& canonical) {
  if (canonical.empty()) return url;
  const Result<Url> named = url.resolve(canonical);
  if (!named.ok() || named->host != url.host || named->port != url.port) return url;
  return named->target() == "/" && url.target() != "/" ? url : *named;
}

}  // namespace

Status ResponseReader::read(const FetchResponse& response, PageText& out) {
  const std::string type = media_type(response.content_type);
  const Content content = content_of(type, response.body);
  if (content == Content::kOther)
    return error(Code::kInvalidArgument, response.url.text, " is ", type.empty() ? "binary" : type.substr(0, 100),
                 ", not text");
  const bool html = content == Content::kHtml;
  const std::string_view utf8 = to_utf8(response.body, response.content_type, html, utf8_);
  STREAMVEC_RETURN_IF_ERROR(check_text(utf8, response.url.text));  // whatever its header calls it
  out = {};
  if (html) {
    read_html(utf8, out);
    if (article_.text.empty()) out.text.clear();
  } else {
    join("", utf8, out.text);
    article_.canonical.clear();
  }
  out.url = own_name(response.url, article_.canonical);
  if (out.text.empty()) return error(Code::kInvalidArgument, response.url.text, " holds no article");
  return {};
}

void ResponseReader::read_html(std::string_view html_utf8, PageText& out) {
  extractor_.extract(html_utf8, article_);
  out.title = article_.title;
  out.time_s = article_.time_s;
  join(article_.title, article_.text, out.text);
}

std::string fragment_text(std::string_view html_utf8) {
  HtmlScanner scanner(html_utf8);
  HtmlToken token;
  std::string out, line;
  const auto end_line = [&] {
    const std::string flat = flat_text(line);
    if (!flat.empty()) (out += flat) += '\n';
    line.clear();
  };
  for (scanner.next(token); token.kind != HtmlToken::Kind::kDone; scanner.next(token)) {
    const bool inside_line =
        token.tag == Tag::kOther || token.tag == Tag::kA || token.tag == Tag::kSpan || token.tag == Tag::kSup;
    if (token.kind == HtmlToken::Kind::kText) {
      line += token.text;
    } else if (!inside_line) {
      end_line();
    }
  }
  end_line();
  return out;
}

std::vector<std::string> feeds_named(const Url& page, std::string_view html) {
  constexpr size_t kFeedsMax = 10;
  std::vector<std::string> feeds;
  HtmlScanner scanner(html);
  HtmlToken token;
  for (scanner.next(token); token.kind != HtmlToken::Kind::kDone && feeds.size() < kFeedsMax; scanner.next(token)) {
    if (token.kind != HtmlToken::Kind::kStart || token.tag != Tag::kLink) continue;
    const std::string type = media_type(token.value(Attribute::kType));
    const bool feed =
        type == "application/rss+xml" || type == "application/atom+xml" || type == "application/feed+json";
    if (!feed || token.value(Attribute::kRel).find("alternate") == std::string_view::npos) continue;
    std::string link;
    append_decoded(token.value(Attribute::kHref), link);
    const Result<Url> url = page.resolve(link);
    if (url.ok() && std::find(feeds.begin(), feeds.end(), url->text) == feeds.end()) feeds.push_back(url->text);
  }
  return feeds;
}

}  // namespace streamvec
