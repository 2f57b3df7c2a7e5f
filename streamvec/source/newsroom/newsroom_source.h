// "newsroom:": the built-in news site, read as any site is: by the crawler, over the network of this machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/source/http/crawl_source.h"
#include "streamvec/source/http/fetcher.h"
#include "streamvec/source/newsroom/site.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Starts a Site and crawls its feed without delays. It ends when every article that can be read was handed out, or
// when nothing came while readers waited for `quiet`. Publishing never runs away from the crawler (articles wait
// for it, whatever the rate), so that each article is met in the feed and their order is kept to within a feed's
// length.
//
// A cursor is short; saved() holds the crawler's memory and where publishing was. After a restart the site comes back
// at its old port, because addresses have it in them: kUnavailable from seek() when another program has taken it.
class NewsroomSource : public Source {
 public:
  struct Options {
    int64_t articles = 6'000;  // about 300 words each
    uint64_t seed = 1;
    double rate = 300;      // articles published a second, as far as the crawler keeps up; 0: as fast as it reads
    int64_t change_at = 0;  // the article with which the changed words change; 0: articles / 2
    bool endless = false;   // goes on after `articles`
    double faults = 1;      // multiplies the share of faulty pages; 0: none
    int32_t port = 0;       // of the site; 0: a free one
    std::chrono::milliseconds quiet{5'000};
  };
  // "newsroom:", "newsroom:?articles=1000&seed=7&rate=100&change=500&faults=0&endless=1&port=8080".
  // kInvalidArgument names what it does not understand, kUnavailable when the port is taken.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
  // REQUIRES: articles > 0, rate and change_at >= 0.
  static Result<std::unique_ptr<NewsroomSource>> open(Options options);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  std::string saved(const std::string& cursor) const override;
  Status commit(const std::string& cursor) override;
  Capabilities capabilities() const override { return {.endless = true}; }  // a stream, also where it has an end
  int64_t bytes_total() const override { return -1; }
  int64_t bytes_read() const override { return crawl_->bytes_read(); }
  std::string name() const override;
  std::vector<std::string> notes() const override { return crawl_->notes(); }

  int64_t articles_read() const { return articles_read_; }  // handed out, from the beginning of the stream
  const newsroom::Site& site() const { return *site_; }
  CrawlStatistics statistics() const { return crawl_->statistics(); }  // not while another thread seeks

 private:
  // Where publishing was.
  struct Place {
    int32_t port = 0;
    int64_t start_s = 0, published = 1, asked = 0;
  };
  explicit NewsroomSource(Options options) : options_(options) {}
  Status start(const Place& place);
  bool ended() const;
  Status seek_saved(const std::string& saved);

  Options options_;
  // In this order: a crawl ends before its fetcher, and both before the site they read.
  std::unique_ptr<newsroom::Site> site_;
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<CrawlSource> crawl_;
  int64_t readable_ = 0;  // articles there will be to read
  int64_t articles_read_ = 0;
  Deadline::Clock::duration waited_{};  // since the last document, in read() only
};

}  // namespace streamvec
