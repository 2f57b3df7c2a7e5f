// Records as JSON, TSV or text (source/record.h): the first line has the settings. Fields that JSON gives are UTF-8, a
// withdrawn record has an id and no text, and a format that has met a bad record reads the next as if it had not.
#include "streamvec/source/record.h"

#include "fuzz/fuzz.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {.seeds = {"format=json&text=/title,/body&id=/id&time=/at&delete=/op:delete\n"
                    "{\"title\":\"A\",\"body\":[\"b\\u00e9\",2],\"id\":7,\"at\":\"2024-05-01\",\"op\":\"create\"}",
                    "text=/commit/record/text&id=/did,/commit/rkey&time=/time_us&delete=/commit/operation:delete\n"
                    "{\"did\":\"d\",\"time_us\":1714559400000000,\"commit\":{\"operation\":\"delete\",\"rkey\":\"k\"}}",
                    "text=2,3&id=1&time=4\nx1\ttitle\tbody\t2024-05-01T00:00:00Z", "format=text\nplain words",
                    "text=/a~1b/0&delete=/gone\n{\"a/b\":[\"\\ud83d\\ude00\",null,true,1e400],\"gone\":false}",
                    "text=/t\n{\"t\":\"\xFF\xC3(\"}"},
          .words = {"\\u0000", "\\ud800", "\"id\":", "{\"", "[[[[", "1e999", "-0", "format=json", "format=tsv",
                    "text=", "delete=", "/-", "~0"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  FuzzInput input(data, size);
  const Result<Location> location = Location::parse("fuzz:x?" + std::string(input.line()));
  if (!location.ok()) return 0;
  Result<RecordFormat> format = RecordFormat::from(*location), fresh = RecordFormat::from(*location);
  STREAMVEC_CHECK_EQ(format.ok(), fresh.ok());
  if (!format.ok()) return 0;
  Document document, again;
  const Status status = format->read(input.rest(), document);
  STREAMVEC_CHECK(format->read("{\"cut", again).ok() == fresh->read("{\"cut", again).ok());
  const Status status_again = format->read(input.rest(), again);
  STREAMVEC_CHECK(status.code() == status_again.code());
  if (!status.ok()) return 0;
  STREAMVEC_CHECK(document.text == again.text && document.id == again.id && document.time_s == again.time_s);
  if (document.deleted) STREAMVEC_CHECK(document.text.empty() && !document.id.empty());
  if (format->kind() == RecordFormat::Kind::kJson) STREAMVEC_CHECK(is_utf8(document.text) && is_utf8(document.id));
  return 0;
}
