// robots.txt (source/http/robots.h): the first line is a target. /robots.txt may always be read, delay and number of
// sitemaps are in range, and the verdict does not depend on how our name is spelled.
#include "streamvec/source/http/robots.h"

#include <cmath>

#include "fuzz/fuzz.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {.seeds =
              {"/a/b.html?x=1\nUser-agent: *\nDisallow: /a\nAllow: /a/*.html$\nCrawl-delay: 2.5\n\nSitemap: http://a/s",
               "/x%2Fy\nuser-agent: streamvec\nuser-agent: other\nallow: /\n# note\ndisallow: /x%2fy\n",
               "/\n\xEF\xBB\xBFUser-Agent : Streamvec/1.0\r\nDisallow:\r\nDisallow: /*/*/*$\r\n",
               "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\nuser-agent:*\ndisallow: /*a*a*a*a*a*a*a*a*a*c"},
          .words = {"User-agent:", "Disallow:", "Allow:", "Crawl-delay:", "Sitemap:", "streamvec", "*", "$", "%2F",
                    "%E", "1e308", "nan", "inf", "-1"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const std::string_view target = input.line();
  const Robots robots = Robots::parse(input.rest(), "streamvec");
  STREAMVEC_CHECK(robots.allows("/robots.txt"));
  STREAMVEC_CHECK(std::isfinite(robots.crawl_delay_s()) && robots.crawl_delay_s() >= 0);
  STREAMVEC_CHECK(robots.sitemaps().size() <= 100);
  const bool allowed = robots.allows(target);
  STREAMVEC_CHECK_EQ(Robots::parse(input.rest(), "STREAMVEC").allows(target), allowed);
  return 0;
}
