#include "apps/streamvec/output.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "streamvec/core/json.h"

namespace streamvec::cli {

Status print(const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) return error(Code::kUnavailable, "standard output: cannot be written (", std::strerror(errno), ")");
  return {};
}

Status print_json(const Json& value) {
  return print(json_text(value) + "\n");
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  // Decimal digits are divided off rather than multiplied on, because 1e-6 is no double but 1e6 is.
  const int decimals = 5 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, std::abs(decimals));
  return decimals >= 0 ? std::round(value * scale) / scale : value;
}

}  // namespace streamvec::cli
