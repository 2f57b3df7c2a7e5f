// Web addresses (source/http/url.h): a page, and on the second line a link on it. The normal form is normal: it parses
// to itself, resolves to itself, has no user, no fragment and no control byte.
#include "streamvec/source/http/url.h"

#include "fuzz/fuzz.h"

namespace streamvec {
namespace {

void check_normal(const Url& url) {
  STREAMVEC_CHECK(url.scheme == "http" || url.scheme == "https");
  STREAMVEC_CHECK(!url.host.empty() && url.port > 0 && url.port < 65'536);
  STREAMVEC_CHECK(url.path.starts_with('/') && (url.query.empty() || url.query.starts_with('?')));
  STREAMVEC_CHECK(url.text.size() <= kUrlBytesMax && url.text.find('#') == std::string::npos);
  for (const char c : url.text) STREAMVEC_CHECK(static_cast<uint8_t>(c) > 0x20 && c != 0x7F);
  STREAMVEC_CHECK(url.host.find('@') == std::string::npos);
  const Result<Url> again = Url::parse(url.text);
  STREAMVEC_CHECK(again.ok());
  STREAMVEC_CHECK_EQ(again->text, url.text);
  const Result<Url> itself = url.resolve(url.text);
  STREAMVEC_CHECK(itself.ok());
  STREAMVEC_CHECK_EQ(itself->text, url.text);
}

}  // namespace

FuzzStart fuzz_start() {
  return {.seeds = {"HTTP://Example.ORG:80/a/../b/./c?x=%7e%2f#f\n../d?e", "https://[::1]:8443/\n//other.example/x",
                    "http://0x7f.1/\n?q",
                    "http://m\xC3\xBCnchen.example/stra\xC3\x9F"
                    "e\n#top",
                    "http://a.example./%\n/ a b", "http://2130706433/\n",
                    " https://a.example \nhttps://user:x@b.example/", "http://a\nmailto:x@y",
                    "http://a.example/x\njavascript:alert(1)", "http://0177.0.0.01/%41%zz?a=b&c\nfile:///etc/passwd"},
          .words = {"http://", "https://", "//", "/../", "/./", "%2e%2e", "%00", "xn--", "[", "]", "@", ":0", ":65535",
                    "?", "#", "\\", "0x", "\xE3\x80\x82"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const std::string_view page = input.line();
  const std::string escapes = normal_escapes(input.rest());
  STREAMVEC_CHECK(normal_escapes(escapes) == escapes);
  const Result<Url> url = Url::parse(page);
  if (!url.ok()) return 0;
  check_normal(*url);
  if (const Result<Url> link = url->resolve(input.rest()); link.ok()) check_normal(*link);
  return 0;
}
