// Dumps of Wikipedia and other wikis: the XML that MediaWiki exports.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "streamvec/source/archive/archive_source.h"
#include "streamvec/source/archive/wikitext.h"

namespace streamvec {

// Each page of namespace 0 that is no redirect is a document: its title, then its text as WikiText leaves it. Its id is
// the page's number, its time that of its last revision in the dump. Plain or compressed dumps; of the "multistream"
// ones a place is found at once, of others all before it is decoded again. A page larger than 16 MB, or cut short, is
// counted and left out.
class WikipediaSource : public ArchiveSource {
 public:
  // "wikipedia:PATH", a file or a directory of them.
  static Result<std::unique_ptr<Source>> open(const std::string& name);

 protected:
  // Reads the wiki's own names of namespaces.
  Status begin_file(const std::string& path) override;
  Result<bool> next(ArchiveFile& file, Document& document) override;

 private:
  using ArchiveSource::ArchiveSource;
  Result<std::string_view> find_page(ArchiveFile& file, size_t& size);
  Result<bool> find(ArchiveFile& file, std::string_view mark);
  Status make_document(std::string_view page, Document& document);

  WikiText wikitext_;
  std::string decoded_, body_;
};

}  // namespace streamvec
