#include "streamvec/source/time_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace streamvec {
namespace {

constexpr int64_t kMayDay = 1'714'566'600;  // 2024-05-01T12:30:00Z

TEST(TimeText, ReadsRfc3339AndItsKin) {
  for (const char* text :
       {"2024-05-01T12:30:00Z", "2024-05-01T12:30:00z", "2024-05-01T12:30:00.999Z", "2024-05-01T14:30:00+02:00",
        "2024-05-01T14:30:00+0200", "2024-05-01T14:30+02", "2024-05-01t07:30:00-05:00", "2024-05-01 12:30:00",
        "2024-05-01 12:30:00 UTC", "2024-05-01T12:30", "20240501T123000Z", "2024/05/01 12:30",
        "  2024-05-01T12:30:00Z\n", "2024-05-01T12:30:00.123456789+00:00", "2024-05-01 21:30 KST"}) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(*time, kMayDay) << text;
  }
}

TEST(TimeText, ReadsMailDates) {
  for (const char* text :
       {"Wed, 01 May 2024 12:30:00 GMT", "Wed, 1 May 2024 12:30:00 +0000", "1 May 2024 12:30 UT",
        "Wed, 01 May 2024 08:30:00 EDT", "Wednesday, 01-May-24 12:30:00 GMT", "01 May 24 14:30:00 +0200",
        "Wed, 01 May 2024 12:30:00", "Wed May  1 12:30:00 2024", "Wed May 01 12:30:00 +0000 2024",
        "wed, 01 may 2024 12:30:00 gmt", "Wed 01 May 2024 12:30:00 Z"}) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(*time, kMayDay) << text;
  }
}

TEST(TimeText, ADateIsItsFirstSecond) {
  const std::pair<const char*, int64_t> dates[] = {{"1970-01-01", 0},
                                                   {"1970-01", 0},
                                                   {"1970", 0},
                                                   {"19700102", 86'400},
                                                   {"2024-05", 1'714'521'600},
                                                   {"2016-00", 1'451'606'400},
                                                   {"2016-05-00", 1'462'060'800},
                                                   {"2000-02-29", 951'782'400},
                                                   {"1969-12-31", -86'400},
                                                   {"1 May 2024", 1'714'521'600},
                                                   {"0001-01-01", -62'135'596'800}};
  for (const auto& [text, seconds] : dates) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(*time, seconds) << text;
  }
}

TEST(TimeText, ReadsNumbersInAnyUnitSince1970) {
  for (const char* text : {"1714566600", "1714566600.75", "1714566600123", "1714566600123456", "1714566600123456789"})
    EXPECT_EQ(*parse_time(text), kMayDay) << text;
  EXPECT_EQ(*parse_time("0"), 0);
  EXPECT_EQ(*parse_time("-86400"), -86'400);
  EXPECT_EQ(*time_of_number(1.7145666e9), kMayDay);
}

TEST(TimeText, EightDigitsThatAreNoDateAreSeconds) {
  EXPECT_EQ(*parse_time("19701399"), 19'701'399);
}

TEST(TimeText, RefusesWhatIsNone) {
  for (const char* text : {"",
                           " ",
                           "yesterday",
                           "2024-13-01",
                           "2023-02-29",
                           "2024-05-01T25:00:00Z",
                           "2024-05-01T12:61:00Z",
                           "2024-05-01T",
                           "2024-05-01Tx",
                           "2024-05-01T12:30:00Q1",
                           "2024-",
                           "Wed, 32 May 2024",
                           "Wed, 01 Foo 2024",
                           "1e99",
                           "nan",
                           "inf",
                           "0000-01-01",
                           "2024-05-01T12:30:00+99:00",
                           "12:30",
                           "--",
                           "2024-05-01T12:30:00Zjunk more"})
    EXPECT_EQ(parse_time(text).status().code(), Code::kInvalidArgument) << text;
}

TEST(TimeText, ATimeThatItsZoneTakesOutOfTheYearsIsRefused) {
  EXPECT_EQ(parse_time("9999-12-31T23:59:59Z").value(), 253'402'300'799);
  EXPECT_FALSE(parse_time("9999-12-31T23:59:60Z").ok());
  EXPECT_FALSE(parse_time("9999-12-31T23:00:00-02:00").ok());
  EXPECT_FALSE(parse_time("0001-01-01T00:00:00+14:00").ok());
}

TEST(TimeText, EveryCutAndEveryByteIsReadOrRefused) {
  for (const std::string text : {"2024-05-01T12:30:00.25+02:00", "Wed, 01 May 2024 12:30:00 GMT", "1714566600123"})
    for (size_t at = 0; at <= text.size(); ++at) {
      (void)parse_time(text.substr(0, at)).ok();
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = text;
        if (at < changed.size()) changed[at] = static_cast<char>(byte);
        if (const auto time = parse_time(changed); time.ok()) {
          EXPECT_GE(*time, -62'135'596'800 - 86'400);
          EXPECT_LE(*time, 253'402'300'800 + 86'400);
        }
      }
    }
  EXPECT_FALSE(parse_time(std::string(100'000, '9')).ok());
}

}  // namespace
}  // namespace streamvec
