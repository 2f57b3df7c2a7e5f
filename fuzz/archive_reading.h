// Archives of any bytes, read to their end and once more from the middle.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.h"
#include "streamvec/source/source.h"

namespace streamvec {

inline std::vector<Document> read_documents(Source& source) {
  std::vector<Document> documents;
  for (;;) {
    const Result<int64_t> count = source.read(8, Deadline::after(std::chrono::seconds(60)), documents);
    if (!count.ok() || *count == 0) return documents;
  }
}

// Opens the bytes as "SCHEME:PATH". A source that goes on after a document gives just those that followed it.
template <typename Kind>
void check_archive(std::string_view scheme, std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::string name = std::string(scheme) + ":" + file.path();
  auto source = Kind::open(name), resumed = Kind::open(name);
  STREAMVEC_CHECK_EQ(source.ok(), resumed.ok());
  if (!source.ok()) return;
  const std::vector<Document> documents = read_documents(**source);
  for (const Document& document : documents) STREAMVEC_CHECK(is_utf8(document.text) && !document.text.empty());
  if (documents.empty()) return;
  const size_t middle = documents.size() / 2;
  STREAMVEC_CHECK((*resumed)->seek((*source)->saved(documents[middle].cursor)).ok());
  const std::vector<Document> rest = read_documents(**resumed);
  STREAMVEC_CHECK_EQ(rest.size(), documents.size() - middle - 1);
  for (size_t i = 0; i < rest.size(); ++i) STREAMVEC_CHECK(rest[i].text == documents[middle + 1 + i].text);
}

}  // namespace streamvec
