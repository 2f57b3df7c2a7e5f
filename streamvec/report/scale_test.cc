#include "streamvec/report/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "streamvec/report/markup.h"

namespace streamvec {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(Scale, EndsAtRoundNumbersThatHoldTheValues) {
  const Scale scale = Scale::make(0.13, 0.97, false, 0, 100);
  EXPECT_DOUBLE_EQ(scale.low(), 0.0);
  EXPECT_DOUBLE_EQ(scale.high(), 1.0);
  EXPECT_THAT(scale.ticks(), Pointwise(DoubleNear(1e-12), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
}

TEST(Scale, MapsEvenlyAndStaysAtItsEndsBeyondThem) {
  const Scale scale = Scale::make(0, 10, false, 300, 100);
  EXPECT_DOUBLE_EQ(scale.at(0), 300);
  EXPECT_DOUBLE_EQ(scale.at(5), 200);
  EXPECT_DOUBLE_EQ(scale.at(10), 100);
  EXPECT_DOUBLE_EQ(scale.at(99), 100);
}

TEST(Scale, ByLogarithmEqualRatiosAreEqualLengths) {
  const Scale scale = Scale::make(1, 10'000, true, 0, 400);
  EXPECT_NEAR(scale.at(100), 200, 1e-9);
  EXPECT_NEAR(scale.at(10) - scale.at(1), scale.at(10'000) - scale.at(1'000), 1e-9);
  EXPECT_THAT(scale.ticks(), ElementsAre(1, 10, 100, 1'000, 10'000));
}

TEST(Scale, ByLogarithmAShortIntervalHasTwosAndFives) {
  EXPECT_THAT(Scale::make(1.3, 16, true, 0, 1).ticks(), ElementsAre(1, 2, 5, 10, 20));
}

TEST(Scale, ByLogarithmALongIntervalHasAFewTicks) {
  EXPECT_LE(Scale::make(1e-12, 1e12, true, 0, 1).ticks().size(), 10u);
}

TEST(Scale, AnEmptyIntervalIsWidened) {
  for (const bool logarithmic : {false, true})
    for (const double value : {0.0, 7.0, 1e-9, 1e9}) {
      const Scale scale = Scale::make(value, value, logarithmic, 0, 1);
      EXPECT_LT(scale.low(), scale.high()) << value;
      EXPECT_GE(scale.ticks().size(), 2u) << value;
      EXPECT_TRUE(std::isfinite(scale.at(value == 0 ? 1 : value))) << value;
    }
}

TEST(Scale, WhatIsNoIntervalBecomesOne) {
  constexpr double kNanEnd = std::numeric_limits<double>::quiet_NaN(),
                   kInfEnd = std::numeric_limits<double>::infinity();
  for (const bool logarithmic : {false, true}) {
    EXPECT_LT(Scale::make(kNanEnd, kNanEnd, logarithmic, 0, 1).low(),
              Scale::make(kNanEnd, kNanEnd, logarithmic, 0, 1).high());
    EXPECT_TRUE(std::isfinite(Scale::make(kInfEnd, -kInfEnd, logarithmic, 0, 1).at(1)));
    EXPECT_TRUE(std::isfinite(Scale::make(-5, -1, logarithmic, 0, 1).at(1)));
  }
}

TEST(TickText, IsShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.05), "0.05");
  EXPECT_EQ(tick_text(12), "12");
  EXPECT_EQ(tick_text(3'000), "3k");
  EXPECT_EQ(tick_text(1'500'000), "1.5M");
  EXPECT_EQ(tick_text(-2e9), "-2G");
}

TEST(NumberText, PartsThousandsAndKeepsWhatCounts) {
  EXPECT_EQ(number_text(98'213, 5), "98,213");
  EXPECT_EQ(number_text(1'234'567), "1,234,567");
  EXPECT_EQ(number_text(-1'234), "-1,234");
  EXPECT_EQ(number_text(394.27, 4), "394.3");
  EXPECT_EQ(number_text(0.0874), "0.0874");
  EXPECT_EQ(number_text(25.0), "25");
  EXPECT_EQ(number_text(999.96, 4), "1,000");
  EXPECT_EQ(number_text(1e-9), "1e-09");
}

TEST(NumberText, WhatIsNoNumberIsADash) {
  EXPECT_EQ(number_text(std::nan("")), "–");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "–");
}

TEST(Escaped, MarkupIsShownNotObeyed) {
  EXPECT_EQ(escaped("<b a='1'>&\"</b>"), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;&lt;/b&gt;");
  EXPECT_EQ(escaped("한국어 é"), "한국어 é");
}

TEST(Escaped, WhatXmlCannotHoldIsReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a" + replacement + "b");
  EXPECT_EQ(escaped("\x1b[0m"), replacement + "[0m");
  EXPECT_EQ(escaped("\xff"), replacement);
  EXPECT_EQ(escaped("\xc3"), replacement);                                      // cut short
  EXPECT_EQ(escaped("\xed\xa0\x80"), replacement + replacement + replacement);  // a surrogate
  EXPECT_EQ(escaped("\xef\xbf\xbf"), replacement + replacement + replacement);  // U+FFFF
  EXPECT_EQ(escaped("a\tb\nc"), "a\tb\nc");
}

}  // namespace
}  // namespace streamvec
