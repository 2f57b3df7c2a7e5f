// What the newsroom's site answers, apart from HTTP itself. Private to the newsroom.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/newsroom/listing.h"
#include "streamvec/source/newsroom/page.h"
#include "streamvec/source/newsroom/page_fault.h"
#include "streamvec/source/newsroom/publisher.h"
#include "streamvec/source/newsroom/site.h"

namespace streamvec::newsroom {

struct Answer {
  int32_t status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
  std::string etag = {}, last_modified = {}, location = {};  // headers, unless ""
  bool cut_off = false;                                      // the connection ends half-way through the body
  bool slow = false;
};

struct Condition {
  std::string etag, modified_since;  // of the reader's copy
};

// Thread-safe.
class Content {
 public:
  // `url` is what all addresses begin with.
  Content(const Site::Options& options, std::string url);

  // `path` as requested, without its query; `page` is the feed's, from 1.
  Answer answer(std::string_view path, int64_t page, const Condition& condition);

  int64_t published() const { return publisher_.published(); }
  int64_t asked() const { return publisher_.asked(); }
  PageFault fault(int64_t number) const { return page_fault(options_.writer.seed, number, options_.faults); }
  int64_t time_s(int64_t number) const;
  std::string article_url(int64_t number) const;

 private:
  Answer feed(int64_t page, const Condition& condition) const;
  Answer sitemap_part(std::string_view path) const;
  Answer sitemap_parts() const;
  Answer front() const;
  Answer article(std::string_view path);
  Answer moved(std::string_view path) const;
  Answer trap(std::string_view path) const;
  Answer article_page(int64_t number, PageFault fault) const;
  Page page(Story story, const std::string& url) const;
  void list(int64_t number, std::vector<ListedPage>& pages) const;
  bool fails_now(int64_t number, PageFault fault);
  bool is_same(const Answer& answer, int64_t newest, const Condition& condition) const;

  Site::Options options_;
  std::string url_;
  Writer writer_;
  Publisher publisher_;
  std::mutex lock_;
  std::set<int64_t> failed_;  // articles whose first request was answered by a fault that passes; the newest of them
};

}  // namespace streamvec::newsroom
