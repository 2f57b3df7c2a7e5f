#include "streamvec/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "streamvec/report/page.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

LinePlot line_plot(std::vector<std::pair<double, double>> points) {
  LinePlot plot;
  plot.title = "quality";
  plot.series = {{"one", std::move(points), 0, false}};
  return plot;
}

TEST(LinePlot, DrawsACurveADotAPointAndItsName) {
  const std::string svg = svg_of(line_plot({{1, 0.5}, {2, 0.25}, {4, 0.125}}));
  EXPECT_EQ(count(svg, "<circle"), 3);
  EXPECT_EQ(count(svg, "<polyline"), 2);  // the curve, and its colour beside its name
  EXPECT_THAT(svg, HasSubstr(">one</text>"));
  EXPECT_THAT(svg, HasSubstr("one: 0.125 at 4"));
}

TEST(LinePlot, ALargerValueStandsHigher) {
  const std::string svg = svg_of(line_plot({{1, 0}, {2, 10}}));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, std::regex("points=\"([0-9.]+),([0-9.]+) ([0-9.]+),([0-9.]+)\"")));
  EXPECT_LT(std::stod(found[1]), std::stod(found[3]));
  EXPECT_GT(std::stod(found[2]), std::stod(found[4]));  // SVG counts downwards
}

TEST(LinePlot, APointThatIsNotFinitePartsTheLine) {
  const std::string svg = svg_of(line_plot({{1, 1}, {2, 2}, {3, kNan}, {4, kInf}, {5, 2}, {6, 1}}));
  EXPECT_EQ(count(svg, "<circle"), 4);
  EXPECT_EQ(count(svg, "<polyline"), 3);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LinePlot, ByLogarithmWhatIsNotPositiveIsLeftOut) {
  LinePlot plot = line_plot({{1, 0}, {2, -3}, {3, 10}});
  plot.logarithmic_y = true;
  EXPECT_EQ(count(svg_of(plot), "<circle"), 1);
}

TEST(LinePlot, WithoutDataItSaysSo) {
  EXPECT_THAT(svg_of(line_plot({})), HasSubstr("nothing was measured"));
  EXPECT_THAT(svg_of(line_plot({{1, kNan}})), HasSubstr("nothing was measured"));
  EXPECT_THAT(svg_of(LinePlot{}), HasSubstr("nothing was measured"));
}

TEST(LinePlot, NamesDoNotLieOnEachOther) {
  LinePlot plot;
  for (int i = 0; i < 12; ++i) plot.series.push_back({"s" + std::to_string(i), {{1, 0.5}, {2, 0.5}}, i, false});
  const std::string svg = svg_of(plot);
  std::vector<double> heights;
  const std::regex name("y=\"([0-9.-]+)\" text-anchor=\"start\" class=\"name\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), name), end; it != end; ++it)
    heights.push_back(std::stod((*it)[1]));
  ASSERT_EQ(heights.size(), 12u);
  std::sort(heights.begin(), heights.end());
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 11);
}

TEST(LinePlot, ALevelWidensTheAxis) {
  LinePlot plot = line_plot({{1, 1}, {2, 2}});
  plot.levels = {{"zeros", 100}};
  EXPECT_THAT(svg_of(plot), HasSubstr(">100</text>"));
  EXPECT_THAT(svg_of(plot), HasSubstr(">zeros</text>"));
}

TEST(BarPlot, LengthsGoByTheValues) {
  BarPlot plot;
  plot.bars = {{"a", 10, 0}, {"b", 5, 1}};
  const std::string svg = svg_of(plot);
  std::vector<double> widths;
  const std::regex width("<rect [^>]*width=\"([0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), width), end; it != end; ++it)
    widths.push_back(std::stod((*it)[1]));
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(widths[0], 2 * widths[1], 0.2);
}

TEST(BarPlot, WhatWasNotMeasuredHasANoteAndNoBar) {
  BarPlot plot;
  plot.bars = {{"a", 10, 0}, {"b", kNan, 1, "did not converge"}};
  EXPECT_EQ(count(svg_of(plot), "<rect"), 1);
  EXPECT_THAT(svg_of(plot), HasSubstr("did not converge"));
}

TEST(BarPlot, WithoutDataItSaysSo) {
  EXPECT_THAT(svg_of(BarPlot{}), HasSubstr("nothing was measured"));
}

TEST(Plot, TextInItIsData) {
  LinePlot plot = line_plot({{1, 1}});
  plot.title = "<script>alert(1)</script>";
  plot.series[0].name = "a\"b<c>";
  EXPECT_THAT(svg_of(plot), Not(HasSubstr("<script")));
  EXPECT_THAT(svg_of(plot), HasSubstr("a&quot;b&lt;c&gt;"));
  BarPlot bars;
  bars.bars = {{"<i>", 1, 0, "&"}};
  EXPECT_THAT(svg_of(bars), Not(HasSubstr("<i>")));
}

TEST(Page, TextInItIsData) {
  Page page("<b>");
  page.heading("<h>");
  page.paragraph("<p1>");
  page.list({"<l>"});
  page.facts({{"<f>", "<g>"}});
  page.code("<c>");
  page.table({{"<th1>"}, {{Cell("<td1>", "bad")}}, 1});
  const std::string html = page.html();
  for (const char* text : {"<b>", "<h>", "<p1>", "<l>", "<f>", "<g>", "<c>", "<th1>", "<td1>"})
    EXPECT_THAT(html, Not(HasSubstr(text)));
  EXPECT_THAT(html, HasSubstr("<td class=\"text bad\">&lt;td1&gt;</td>"));
}

TEST(Page, NeedsNothingFromElsewhere) {
  Page page("x");
  page.figure(svg_of(line_plot({{1, 1}})));
  const std::string html = page.html();
  for (const char* text : {"<script", "<link", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(text)));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

}  // namespace
}  // namespace streamvec
