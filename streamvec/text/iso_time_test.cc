// Dates that pages write for machines.
#include "streamvec/text/iso_time.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

constexpr int64_t kDay = 86'400;
constexpr int64_t kFirstOfMay = 1'714'521'600;  // 2024-05-01T00:00:00Z

TEST(IsoTime, ReadsDatesInEverySpelling) {
  for (const char* text : {"2024-05-01", "2024/05/01", "2024.05.01", "20240501", "2024-5-1", " 2024-05-01 ", "2024-05"})
    EXPECT_EQ(parse_iso_time(text), kFirstOfMay) << text;
  EXPECT_EQ(parse_iso_time("1970-01-01"), 0);
  EXPECT_EQ(parse_iso_time("1969-12-31"), -kDay);
  EXPECT_EQ(parse_iso_time("2024-02-29"), kFirstOfMay - 62 * kDay);
}

TEST(IsoTime, ReadsTimesAndZones) {
  for (const char* text : {"2024-05-01T09:30:15Z", "2024-05-01 09:30:15", "2024-05-01T09:30:15.250Z",
                           "20240501T093015Z", "2024-05-01T18:30:15+09:00", "2024-05-01T18:30:15+0900",
                           "2024-05-01T04:30:15-05", "2024-05-01 09:30:15 UTC", "2024-05-01T09:30:15 +00:00"})
    EXPECT_EQ(parse_iso_time(text), kFirstOfMay + 9 * 3600 + 30 * 60 + 15) << text;
  EXPECT_EQ(parse_iso_time("2024-05-01T09:30"), kFirstOfMay + 9 * 3600 + 30 * 60);
}

TEST(IsoTime, GivesNothingForWhatIsNoDate) {
  for (const char* text : {"", "yesterday", "05/01/2024", "2024", "2024-13-01", "2024-02-30", "2023-02-29",
                           "1776-07-04", "202405011", "2024-05-011", "9999-01-01"})
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
}

TEST(IsoTime, NonsenseAfterADateIsPassedOver) {
  EXPECT_EQ(parse_iso_time("2024-05-01T99:99"), kFirstOfMay);
  EXPECT_EQ(parse_iso_time("2024-05-01 in the evening"), kFirstOfMay);
  EXPECT_EQ(parse_iso_time("2024-05-01T09:30:15+99:99"), kFirstOfMay + 9 * 3600 + 30 * 60 + 15);
}

}  // namespace
}  // namespace streamvec
