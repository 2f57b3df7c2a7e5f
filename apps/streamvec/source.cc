// streamvec source check: what an address would be read as.
#include "apps/streamvec/commands.h"
#include "apps/streamvec/output.h"
#include "streamvec/source/http/source_check.h"

namespace streamvec::cli {
namespace {

constexpr size_t kTextShown = 300;  // bytes of a document

// The beginning of a text, not cut inside a character.
std::string beginning(const std::string& text) {
  if (text.size() <= kTextShown) return text;
  size_t size = kTextShown;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size) + "...";
}

Json json_of(const SourceCheck& check) {
  const CrawlStatistics& statistics = check.statistics;
  Json documents = Json::array();
  for (const Document& document : check.documents)
    documents.push_back({{"id", document.id}, {"time", document.time_s}, {"text", document.text}});
  Json json = {{"url", check.url},
               {"kind", statistics.kind},
               {"title", statistics.title},
               {"robots", statistics.robots},
               {"pages_found", statistics.pages_waiting + statistics.pages_read + statistics.pages_given_up},
               {"pages_given_up", statistics.pages_given_up},
               {"links_refused", statistics.links_refused},
               {"feeds_named", statistics.feeds_named},
               {"next_poll_s", rounded(statistics.next_poll_s)},
               {"documents", std::move(documents)},
               {"notes", check.notes}};
  json["error"] = check.status.ok() ? Json() : Json(check.status.message());
  return json;
}

std::string lines_of(const SourceCheck& check) {
  const CrawlStatistics& statistics = check.statistics;
  std::string text = check.url + "\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += "  " + name + std::string(10 - std::min<size_t>(name.size(), 9), ' ') + value + "\n";
  };
  line("kind", statistics.kind);
  line("title", statistics.title);
  line("robots", statistics.robots);
  if (statistics.kind != "page")
    line("pages", std::to_string(statistics.pages_waiting + statistics.pages_read) + " found");
  for (const std::string& note : check.notes) line("note", note);
  for (const Document& document : check.documents) {
    std::string body = beginning(document.text);
    while (body.ends_with('\n')) body.pop_back();
    for (size_t at = 0; (at = body.find('\n', at)) != std::string::npos; at += 5) body.replace(at, 1, "\n    ");
    text += "\n  " + document.id + "\n    " + body + "\n";
  }
  return text;
}

}  // namespace

Status misuse_of_source(const Arguments& arguments) {
  if (arguments.words[0] != "check")
    return error(Code::kInvalidArgument, "unknown: source ", arguments.words[0], "; try: streamvec source check URL");
  if (arguments.words[1].find("://") == std::string::npos)
    return error(Code::kInvalidArgument, arguments.words[1],
                 " is no web address; source check takes one that begins with http:// or https:// (files need no "
                 "check: streamvec train ",
                 arguments.words[1], ")");
  return {};
}

Result<int> run_source(const Arguments& arguments) {
  Fetcher::Options fetching;
  fetching.private_hosts = arguments.list("allow-private");
  fetching.ca = arguments.text("ca");
  Fetcher fetcher(fetching);
  SourceCheckOptions options;
  options.documents = arguments.integer("documents");
  options.crawl.fetcher = &fetcher;
  STREAMVEC_ASSIGN_OR_RETURN(const SourceCheck check,
                             check_source(arguments.words[1], options, Deadline::after_s(arguments.real("timeout"))));
  STREAMVEC_RETURN_IF_ERROR(arguments.flag("json") ? print_json(json_of(check)) : print(lines_of(check)));
  if (check.documents.empty() && !check.status.ok()) return check.status;
  return 0;
}

}  // namespace streamvec::cli
