#include "streamvec/source/archive/wikipedia_source.h"

#include <algorithm>
#include <utility>

#include "streamvec/source/file_source.h"
#include "streamvec/source/location.h"
#include "streamvec/source/time_text.h"
#include "streamvec/text/html_entities.h"

namespace streamvec {
namespace {

constexpr size_t kPageBytesMax = size_t{16} << 20;
constexpr size_t kPeekBytes = size_t{64} << 10;
constexpr std::string_view kPageBegin = "<page>", kPageEnd = "</page>";

// The content of the first element `name` in `xml`, as written; "" when there is none. The dump's elements that are
// asked for have no elements of their own name inside.
std::string_view element(std::string_view xml, std::string_view name) {
  for (size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at + 1)) {
    const std::string_view tag = xml.substr(at + 1, name.size() + 1);
    if (tag.size() <= name.size() || !tag.starts_with(name)) continue;
    if (tag.back() != '>' && tag.back() != ' ') continue;
    const size_t begin = xml.find('>', at);
    if (begin == std::string_view::npos || xml[begin - 1] == '/') return {};
    const size_t end = xml.find("</" + std::string(name) + ">", begin);
    return end == std::string_view::npos ? std::string_view() : xml.substr(begin + 1, end - begin - 1);
  }
  return {};
}

bool is_redirect(std::string_view wikitext) {
  const size_t begin = std::min(wikitext.find_first_not_of(" \t\r\n"), wikitext.size());
  const std::string_view word = wikitext.substr(begin, 9);
  constexpr std::string_view kRedirect = "#redirect";
  return word.size() == kRedirect.size() && std::equal(word.begin(), word.end(), kRedirect.begin(),
                                                       [](char a, char b) { return (a | 0x20) == b || a == b; });
}

}  // namespace

Result<std::unique_ptr<Source>> WikipediaSource::open(const std::string& name) {
  STREAMVEC_ASSIGN_OR_RETURN(const Location location, Location::parse(name));
  STREAMVEC_RETURN_IF_ERROR(location.check_keys({}));
  if (!location.host.empty() || location.path.empty())
    return error(Code::kInvalidArgument, name, ": a path is missing; write wikipedia:PATH");
  STREAMVEC_ASSIGN_OR_RETURN(std::vector<FileStamp> files, list_files({location.path}));
  return std::unique_ptr<Source>(new WikipediaSource(location.name, std::move(files)));
}

// <namespace key="14" case="first-letter">분류</namespace>
Status WikipediaSource::begin_file(const std::string& path) {
  STREAMVEC_ASSIGN_OR_RETURN(ArchiveFile file, ArchiveFile::open(path));
  const Result<std::string_view> head = file.peek(kPeekBytes);
  if (!head.ok()) return head.status().code() == Code::kDataLoss ? Status() : head.status();
  constexpr std::string_view kBegin = "<namespace key=\"";
  for (size_t at = head->find(kBegin); at != std::string_view::npos; at = head->find(kBegin, at + 1)) {
    const std::string_view rest = head->substr(at + kBegin.size(), 300);
    const bool dropped = rest.starts_with("6\"") || rest.starts_with("14\"") || rest.starts_with("-2\"");
    const size_t begin = rest.find('>'), end = rest.find('<');
    if (dropped && begin != std::string_view::npos && end != std::string_view::npos && begin < end)
      wikitext_.drop_links_to(rest.substr(begin + 1, end - begin - 1));
  }
  return {};
}

// Passes what comes before `mark`; false when the file ends before.
Result<bool> WikipediaSource::find(ArchiveFile& file, std::string_view mark) {
  for (;;) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view text, file.peek(kPeekBytes));
    if (const size_t at = text.find(mark); at != std::string_view::npos) {
      file.take(at);
      return true;
    }
    const bool last = text.size() < kPeekBytes;
    file.take(text.size() - (last ? 0 : mark.size() - 1));
    if (last && text.empty()) return false;
  }
}

// The page that begins here, with `size` its bytes; empty when it is too large (it was passed) or cut short.
Result<std::string_view> WikipediaSource::find_page(ArchiveFile& file, size_t& size) {
  size_t looked = 0;
  for (size_t wanted = kPeekBytes;; wanted *= 2) {
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view text, file.peek(std::min(wanted, kPageBytesMax)));
    const size_t end = text.find(kPageEnd, looked);
    if (end != std::string_view::npos) {
      size = end + kPageEnd.size();
      return text.substr(0, size);
    }
    looked = text.size() - std::min(text.size(), kPageEnd.size());
    if (text.size() >= std::min(wanted, kPageBytesMax) && wanted < kPageBytesMax) continue;
    const bool cut = text.size() < std::min(wanted, kPageBytesMax);
    counts_.bad(cut ? error(Code::kInvalidArgument, "a page that is cut short")
                    : error(Code::kResourceExhausted, "a page larger than ", kPageBytesMax, " bytes"));
    size = 0;
    file.take(kPageBegin.size());
    return std::string_view();
  }
}

Result<bool> WikipediaSource::next(ArchiveFile& file, Document& document) {
  for (;;) {
    STREAMVEC_ASSIGN_OR_RETURN(const bool found, find(file, kPageBegin));
    if (!found) return false;
    size_t size = 0;
    STREAMVEC_ASSIGN_OR_RETURN(const std::string_view page, find_page(file, size));
    if (page.empty()) continue;
    const Status status = make_document(page, document);
    file.take(size);
    if (status.ok()) return true;
    if (status.code() != Code::kNotFound) counts_.bad(status);
  }
}

// kNotFound: it is not of those wanted.
Status WikipediaSource::make_document(std::string_view page, Document& document) {
  const std::string_view ns = element(page, "ns");
  if (!ns.empty() && ns != "0") return error(Code::kNotFound, "another namespace");
  const std::string_view head = page.substr(0, page.find("<revision>"));
  if (head.find("<redirect") != std::string_view::npos) return error(Code::kNotFound, "a redirect");
  // Of several revisions the last.
  const size_t revision = page.rfind("<revision>");
  if (revision == std::string_view::npos) return error(Code::kInvalidArgument, "a page without a revision");
  decoded_.clear();
  append_decoded(element(page.substr(revision), "text"), decoded_);
  if (is_redirect(decoded_)) return error(Code::kNotFound, "a redirect");
  wikitext_.extract(decoded_, body_);
  if (body_.empty()) return error(Code::kNotFound, "a page without text");
  document.text.clear();
  append_decoded(element(head, "title"), document.text);
  document.text += "\n" + body_;
  document.id = element(head, "id");
  document.deleted = false;
  const Result<int64_t> time = parse_time(element(page.substr(revision), "timestamp"));
  document.time_s = time.ok() ? *time : 0;
  return {};
}

}  // namespace streamvec
