// The files of the dashboard, which are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace streamvec {

struct Asset {
  std::string_view path;          // "/index.html"
  std::string_view content_type;  // with charset where it is text
  std::string_view bytes;
  std::string_view etag;  // with quotes
};

std::span<const Asset> assets();
// nullptr when there is none. "/" is "/index.html".
const Asset* find_asset(std::string_view path);

}  // namespace streamvec
