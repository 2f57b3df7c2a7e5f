// Web archives: WARC files of crawled pages, and WET files of their text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/archive/archive_source.h"
#include "streamvec/text/article.h"

namespace streamvec {

// WARC 1.0 and 1.1, plain or compressed record by record (as Common Crawl has them: any place is found at once) or as a
// whole. Documents are: of `response` and `resource` records whose status is 2xx and that are HTML, the title and the
// article (see text/article.h); of `conversion` records (WET) and those of plain text, the text. Their id is the page's
// address, their time the page's own or else that of the crawl. Records of other kinds are passed over. A record that
// is broken (no header within 64 KB, a wrong length, a damaged member, more than 8 MB) is counted, and reading goes on
// with the next one.
class WarcSource : public ArchiveSource {
 public:
  // "warc:PATH", a file or a directory of them.
  static Result<std::unique_ptr<Source>> open(const std::string& name);

 protected:
  Status begin_file(const std::string& path) override;
  Result<bool> next(ArchiveFile& file, Document& document) override;

 private:
  struct Header;
  using ArchiveSource::ArchiveSource;
  Result<bool> read_header(ArchiveFile& file, Header& header);
  Result<bool> read_record(ArchiveFile& file, const Header& header, Document& document);
  Status resynchronise(ArchiveFile& file, size_t bytes);
  Result<bool> pass_record(ArchiveFile& file, const Header& header);
  Status make_document(const Header& header, std::string_view content, Document& document);
  Status make_page(std::string_view body, std::string_view content_type, Document& document);

  ArticleExtractor extractor_;
  Article article_;
  std::string body_, utf8_;
  int goings_back_ = 0;  // in this file
};

}  // namespace streamvec
