// Plots as SVG to stand inside a Page, whose style sheet gives them their colours, light and dark. Everything drawn has
// its text beside it: no colour is needed to read one, and a pointer over a mark shows its value.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace streamvec {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by rising x; those that are not finite part the line
  int colour = 0;                                 // 0 .. 7; series that belong together may share one
  bool dashed = false;
};

// A line across the whole plot, to hold the others against.
struct Level {
  std::string name;
  double value = 0;
};

struct LinePlot {
  std::string title, x_label, y_label;
  bool logarithmic_x = false, logarithmic_y = false;  // values that are not positive are then left out
  std::vector<Series> series;
  std::vector<Level> levels;
};

struct Bar {
  std::string label;
  double value = 0;  // not finite: the label stands alone, with `note`
  int colour = 0;
  std::string note = {};  // after the value
};

// Bars that go to the right, one below the other.
struct BarPlot {
  std::string title, unit;
  bool logarithmic = false;  // bars then begin at the axis' low end, and their length tells nothing but order
  std::vector<Bar> bars;
  std::vector<std::pair<std::string, int>> legend;  // names of the colours
};

// One <svg> element each, well-formed XML. Without anything to draw it says so.
std::string svg_of(const LinePlot& plot);
std::string svg_of(const BarPlot& plot);

}  // namespace streamvec
