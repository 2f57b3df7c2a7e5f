#include "streamvec/cluster/message_parts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "streamvec/cluster/stream_message.h"
#include "streamvec/vocab/state_bytes.h"

namespace streamvec {

// Where the part begins, how long the message is, then the bytes.
std::vector<std::string> in_parts(std::string_view message, int64_t bytes_max) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < message.size(); begin += static_cast<size_t>(bytes_max)) {
    StateWriter out;
    out.put(static_cast<uint64_t>(begin));
    out.put(static_cast<uint64_t>(message.size()));
    out.put_all(std::span<const char>(message.substr(begin, static_cast<size_t>(bytes_max))));
    parts.push_back(out.take());
  }
  return parts;
}

Result<std::optional<std::string>> MessageParts::take(NodeId from, std::string_view part) {
  StateReader in(part);
  const auto begin = in.get<uint64_t>(), size = in.get<uint64_t>();
  if (!in.ok() || in.at_end()) return unreadable_stream();
  const std::string_view bytes = part.substr(in.offset());
  if (begin > size || bytes.size() > size - begin) return unreadable_stream();
  if (begin == 0) begun_[from].clear();
  const auto begun = begun_.find(from);
  if (begun == begun_.end() || begun->second.size() != begin) return std::optional<std::string>();
  begun->second.append(bytes);
  if (begun->second.size() < size) return std::optional<std::string>();
  std::optional<std::string> whole = std::move(begun->second);
  begun_.erase(begun);
  return whole;
}

void MessageParts::forget_others(const std::set<NodeId>& nodes) {
  std::erase_if(begun_, [&](const auto& begun) { return nodes.count(begun.first) == 0; });
}

}  // namespace streamvec
