// From values to places on a plot, and where its axis is marked.
#pragma once

#include <string>
#include <vector>

namespace streamvec {

// Maps [low, high] to [begin, end] (which may be turned round, as the heights of SVG are), evenly or by logarithm.
class Scale {
 public:
  // Ends at round numbers that hold [low, high]; an empty or impossible interval is widened. By logarithm, values must
  // be positive: `low` is raised to a thousandth of `high` when it is not.
  static Scale make(double low, double high, bool logarithmic, double begin, double end);

  // Beyond the ends it stays at them. REQUIRES: `value` is finite.
  double at(double value) const;
  bool logarithmic() const { return logarithmic_; }
  double low() const { return low_; }
  double high() const { return high_; }
  // Round numbers within the interval, rising: about five on an even scale; by logarithm the powers of ten, with twos
  // and fives between them when they would be few, and fewer when they would be many.
  std::vector<double> ticks() const;

 private:
  bool logarithmic_ = false;
  double low_ = 0, high_ = 1, begin_ = 0, end_ = 1;
};

// 0.05, 12, 3k, 1.5M, 2G.
std::string tick_text(double value);

}  // namespace streamvec
