#include "streamvec/source/splits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {

std::string SharedCursor::text() const {
  std::string text = "{\"shared\":[";
  for (size_t i = 0; i < splits.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(splits[i]);
  return text + "],\"bytes\":" + std::to_string(bytes) + "}";
}

Result<SharedCursor> SharedCursor::parse(const std::string& text) {
  const nlohmann::json all = parse_json(text);
  const auto whole = [](const nlohmann::json& value) { return value.is_number_integer(); };
  if (!all.is_object() || !all.contains("shared") || !all["shared"].is_array() || !all.contains("bytes") ||
      !whole(all["bytes"]) || !std::all_of(all["shared"].begin(), all["shared"].end(), whole))
    return error(Code::kInvalidArgument, "not a cursor of a shared stream: ", text.substr(0, 100));
  return SharedCursor{all["shared"].get<std::vector<int64_t>>(), all["bytes"].get<int64_t>()};
}

void SharedCursor::merge(const SharedCursor& other) {
  for (size_t i = 0; i < other.splits.size(); ++i)
    if (i == splits.size())
      splits.push_back(other.splits[i]);
    else
      splits[i] = std::max(splits[i], other.splits[i]);
  bytes = std::max(bytes, other.bytes);
}

}  // namespace streamvec
