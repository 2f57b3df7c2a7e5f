#include "streamvec/report/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

#include "streamvec/report/markup.h"
#include "streamvec/report/scale.h"

namespace streamvec {
namespace {

constexpr double kWidth = 720;
constexpr int kPlotColours = 8;

// Where a figure's part lies.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string colour_class(int colour) {
  return "c" + std::to_string((colour % kPlotColours + kPlotColours) % kPlotColours);
}

// Elements one after the other.
class Drawing {
 public:
  void text(double x, double y, std::string_view anchor, std::string_view kind, std::string_view words) {
    out_ += "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" text-anchor=\"" + std::string(anchor) +
            "\" class=\"" + std::string(kind) + "\">" + escaped(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view kind) {
    out_ += "<line x1=\"" + coordinate(x1) + "\" y1=\"" + coordinate(y1) + "\" x2=\"" + coordinate(x2) + "\" y2=\"" +
            coordinate(y2) + "\" class=\"" + std::string(kind) + "\"/>\n";
  }
  void bar(double x, double y, double width, double height, int colour, std::string_view hint) {
    out_ += "<rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" + coordinate(width) +
            "\" height=\"" + coordinate(height) + "\" rx=\"2\" class=\"bar " + colour_class(colour) + "\">" +
            hint_of(hint) + "</rect>\n";
  }
  void dot(double x, double y, int colour, std::string_view hint) {
    out_ += "<circle cx=\"" + coordinate(x) + "\" cy=\"" + coordinate(y) + "\" r=\"3.2\" class=\"bar " +
            colour_class(colour) + "\">" + hint_of(hint) + "</circle>\n";
  }
  // A line through `path`, "x,y x,y ...".
  void curve(const std::string& path, int colour, bool dashed) {
    if (!path.empty())
      out_ += "<polyline points=\"" + path + "\" class=\"curve " + colour_class(colour) + (dashed ? " dashed" : "") +
              "\"/>\n";
  }
  // The whole, `height` high.
  std::string svg(double height, const std::string& title) const {
    return "<svg viewBox=\"0 0 " + coordinate(kWidth) + " " + coordinate(height) +
           "\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n<title>" + escaped(title) + "</title>\n" + out_ +
           "</svg>\n";
  }

 private:
  static std::string hint_of(std::string_view hint) { return "<title>" + escaped(hint) + "</title>"; }
  std::string out_;
};

bool drawable(double value, bool logarithmic) {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

bool drawable(const LinePlot& plot, const std::pair<double, double>& point) {
  return drawable(point.first, plot.logarithmic_x) && drawable(point.second, plot.logarithmic_y);
}

std::string nothing(const std::string& title) {
  Drawing drawing;
  drawing.text(0, 16, "start", "plot-title", title);
  drawing.text(kWidth / 2, 48, "middle", "tick", "nothing was measured");
  return drawing.svg(70, title);
}

void draw_axes(Drawing& drawing, const Box& box, const Scale& x, const Scale& y, const LinePlot& plot) {
  for (const double tick : y.ticks()) {
    drawing.line(box.left, y.at(tick), box.right, y.at(tick), "grid");
    drawing.text(box.left - 6, y.at(tick) + 4, "end", "tick", tick_text(tick));
  }
  for (const double tick : x.ticks()) {
    drawing.line(x.at(tick), box.bottom, x.at(tick), box.bottom + 4, "axis");
    drawing.text(x.at(tick), box.bottom + 17, "middle", "tick", tick_text(tick));
  }
  drawing.line(box.left, box.bottom, box.right, box.bottom, "axis");
  drawing.text((box.left + box.right) / 2, box.bottom + 34, "middle", "label", plot.x_label);
  drawing.text(0, 34, "start", "label", plot.y_label);
}

void draw_series(Drawing& drawing, const Scale& x, const Scale& y, const LinePlot& plot, const Series& series) {
  std::string path;
  for (const auto& point : series.points) {
    if (!drawable(plot, point)) {
      drawing.curve(path, series.colour, series.dashed);
      path.clear();
      continue;
    }
    path += (path.empty() ? "" : " ") + coordinate(x.at(point.first)) + "," + coordinate(y.at(point.second));
  }
  drawing.curve(path, series.colour, series.dashed);
  for (const auto& point : series.points)
    if (drawable(plot, point))
      drawing.dot(x.at(point.first), y.at(point.second), series.colour,
                  series.name + ": " + number_text(point.second, 4) + " at " + number_text(point.first, 4));
}

// Names at the right, each as near to its last point as the others let it.
struct Name {
  double y = 0;
  const Series* series = nullptr;
  const Level* level = nullptr;
};

std::vector<Name> names_of(const LinePlot& plot, const Scale& y) {
  std::vector<Name> names;
  for (const Series& series : plot.series)
    for (auto point = series.points.rbegin(); point != series.points.rend(); ++point)
      if (drawable(plot, *point)) {
        names.push_back({y.at(point->second), &series, nullptr});
        break;
      }
  for (const Level& level : plot.levels)
    if (drawable(level.value, plot.logarithmic_y)) names.push_back({y.at(level.value), nullptr, &level});
  return names;
}

void part_names(std::vector<Name>& names, double gap, double bottom) {
  std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
  for (size_t i = 1; i < names.size(); ++i) names[i].y = std::max(names[i].y, names[i - 1].y + gap);
  double most = bottom;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    name->y = std::min(name->y, most);
    most = name->y - gap;
  }
}

void draw_names(Drawing& drawing, const Box& box, const LinePlot& plot, const Scale& y) {
  std::vector<Name> names = names_of(plot, y);
  part_names(names, 15, box.bottom);
  for (const Name& name : names) {
    if (name.level != nullptr) {
      drawing.text(box.right + 34, name.y + 4, "start", "name", name.level->name);
      continue;
    }
    const std::string x = coordinate(box.right + 10) + "," + coordinate(name.y), end = coordinate(box.right + 28);
    drawing.curve(x + " " + end + "," + coordinate(name.y), name.series->colour, name.series->dashed);
    drawing.text(box.right + 34, name.y + 4, "start", "name", name.series->name);
  }
}

size_t longest(const std::vector<Bar>& bars) {
  size_t most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.label.size());
  return most;
}

Extent extent_of(const BarPlot& plot) {
  Extent extent;
  for (const Bar& bar : plot.bars)
    if (drawable(bar.value, plot.logarithmic)) extent.add(bar.value);
  if (!plot.logarithmic && std::isfinite(extent.low)) extent.add(0);
  return extent;
}

void draw_bar(Drawing& drawing, const Box& box, const Scale& x, const Bar& bar, bool logarithmic, double y) {
  constexpr double kThickness = 13;
  drawing.text(box.left - 8, y + kThickness - 2.5, "end", "name", bar.label);
  const bool drawn = drawable(bar.value, logarithmic);
  const double from = logarithmic ? box.left : x.at(0), to = drawn ? x.at(bar.value) : from;
  std::string value = std::isfinite(bar.value) ? number_text(bar.value) : "";
  if (!bar.note.empty()) value += (value.empty() ? "" : " ") + bar.note;
  if (drawn)
    drawing.bar(std::min(from, to), y, std::max(1.0, std::abs(to - from)), kThickness, bar.colour,
                bar.label + ": " + value);
  drawing.text(std::max(from, to) + 5, y + kThickness - 2.5, "start", "value", value);
}

}  // namespace

std::string svg_of(const LinePlot& plot) {
  Extent x_extent, y_extent;
  size_t named = plot.levels.size();
  for (const Series& series : plot.series) {
    named += !series.points.empty();
    for (const auto& point : series.points) {
      if (!drawable(plot, point)) continue;
      x_extent.add(point.first);
      y_extent.add(point.second);
    }
  }
  if (x_extent.low > x_extent.high) return nothing(plot.title);
  for (const Level& level : plot.levels)
    if (drawable(level.value, plot.logarithmic_y)) y_extent.add(level.value);
  const double height = std::max(240.0, 15.0 * static_cast<double>(named));
  const Box box{46, 46, 480, 46 + height};
  const Scale x = Scale::make(x_extent.low, x_extent.high, plot.logarithmic_x, box.left + 6, box.right);
  const Scale y = Scale::make(y_extent.low, y_extent.high, plot.logarithmic_y, box.bottom, box.top);
  Drawing drawing;
  drawing.text(0, 16, "start", "plot-title", plot.title);
  draw_axes(drawing, box, x, y, plot);
  for (const Level& level : plot.levels)
    if (drawable(level.value, plot.logarithmic_y))
      drawing.line(box.left, y.at(level.value), box.right, y.at(level.value), "level");
  for (const Series& series : plot.series) draw_series(drawing, x, y, plot, series);
  draw_names(drawing, box, plot, y);
  return drawing.svg(box.bottom + 44, plot.title);
}

std::string svg_of(const BarPlot& plot) {
  const Extent extent = extent_of(plot);
  if (extent.low > extent.high) return nothing(plot.title);
  constexpr double kRow = 19;
  const double left = std::min(330.0, 16 + 6.3 * static_cast<double>(longest(plot.bars)));
  const double top = plot.legend.empty() ? 34 : 54;
  const Box box{left, top, 600, top + kRow * static_cast<double>(plot.bars.size())};
  const Scale x = Scale::make(extent.low, extent.high, plot.logarithmic, box.left, box.right);
  Drawing drawing;
  drawing.text(0, 16, "start", "plot-title", plot.title);
  double at = 0;
  for (const auto& [name, colour] : plot.legend) {
    drawing.bar(at, 30, 12, 12, colour, name);
    drawing.text(at + 18, 40, "start", "name", name);
    at += 34 + 6.6 * static_cast<double>(name.size());
  }
  for (const double tick : x.ticks()) {
    drawing.line(x.at(tick), box.top - 4, x.at(tick), box.bottom, "grid");
    drawing.text(x.at(tick), box.bottom + 15, "middle", "tick", tick_text(tick));
  }
  for (size_t i = 0; i < plot.bars.size(); ++i)
    draw_bar(drawing, box, x, plot.bars[i], plot.logarithmic, box.top + kRow * static_cast<double>(i));
  drawing.text((box.left + box.right) / 2, box.bottom + 32, "middle", "label",
               plot.unit + (plot.logarithmic ? " (logarithmic)" : ""));
  return drawing.svg(box.bottom + 42, plot.title);
}

}  // namespace streamvec
