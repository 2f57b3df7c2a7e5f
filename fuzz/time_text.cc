// Times as text (source/time_text.h, text/iso_time.h): what is read lies within the years promised, and blanks around
// it change nothing.
#include "streamvec/source/time_text.h"

#include "fuzz/fuzz.h"
#include "streamvec/text/iso_time.h"

namespace streamvec {

FuzzStart fuzz_start() {
  return {.seeds = {"2024-05-01T12:30:00.25+02:00", "2024-05-01 12:30Z", "20240501T123000Z", "2024-05", "2024",
                    "20240501", "2024-00-00", "Wed, 01 May 2024 12:30:00 +0200", "1 May 24 12:30 GMT",
                    "Wednesday, 01-May-24 12:30:00 PST", "1714559400", "1714559400123.5", "1714559400000000", "-1",
                    "2024/5/1 7:05 UTC", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:60Z", "2024-02-30"},
          .words = {"GMT", "EST", "+1400", "Feb", "29", "T24:00", ":60", "e308", "nan", "inf"}};
}

}  // namespace streamvec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace streamvec;
  constexpr int64_t kYear1 = -62'135'596'800, kYear10000 = 253'402'300'800;
  constexpr int64_t kYear1900 = -2'208'988'800, kYear2201 = 7'289'654'400, kZoneMax = 100 * 3600;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<int64_t> time = parse_time(text);
  if (time.ok()) STREAMVEC_CHECK(*time >= kYear1 && *time < kYear10000);
  const Result<int64_t> padded = parse_time(" " + text + " ");
  STREAMVEC_CHECK(time.ok() == padded.ok() && (!time.ok() || *time == *padded));
  if (const auto iso = parse_iso_time(text))
    STREAMVEC_CHECK(*iso >= kYear1900 - kZoneMax && *iso < kYear2201 + kZoneMax);
  return 0;
}
