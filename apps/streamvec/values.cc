#include "apps/streamvec/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "streamvec/core/address.h"
#include "streamvec/ingest/stream_clock.h"
#include "streamvec/source/time_text.h"
#include "streamvec/text/language.h"
#include "streamvec/text/stemmer.h"

namespace streamvec::cli {
namespace {

constexpr double kBitsPerByte = 8;
constexpr int32_t kNodesMax = 4096;

// Between the commas; what is empty is one, too.
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The number that `text` begins with, and what follows it.
template <typename Number>
struct Parsed {
  Number number = 0;
  std::string_view rest;
  bool good = false;
};

template <typename Number>
Parsed<Number> parse_front(const std::string& text) {
  Parsed<Number> parsed;
  const char* last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, parsed.number);
  parsed.rest = std::string_view(end, static_cast<size_t>(last - end));
  parsed.good = failure == std::errc();
  return parsed;
}

}  // namespace

Result<std::vector<std::string>> parse_addresses(const std::string& list) {
  std::vector<std::string> parts = parts_of(list);
  for (const std::string& part : parts)
    if (!parse_host_port(part).ok())
      return error(Code::kInvalidArgument, "'", part,
                   "' is no host:port (of IPv6: [host]:port); give one of each node, ", "as in node1:7000,node2:7000");
  return parts;
}

Result<std::vector<int32_t>> parse_node_counts(const std::string& list) {
  std::vector<int32_t> counts;
  for (const std::string& part : parts_of(list)) {
    const auto [count, rest, good] = parse_front<int32_t>(part);
    if (!good || !rest.empty() || count < 1 || count > kNodesMax)
      return error(Code::kInvalidArgument, "'", part, "' is no number of nodes from 1 to ", kNodesMax,
                   "; give some, as in 4,16,64");
    counts.push_back(count);
  }
  return counts;
}

Result<std::vector<Bandwidth>> parse_bandwidths(const std::string& list) {
  std::vector<Bandwidth> all;
  for (const std::string& part : parts_of(list)) {
    const auto [value, unit, good] = parse_front<double>(part);
    const double bits = unit == "Gbit" ? 1e9 : unit == "Mbit" ? 1e6 : 0;
    if (!good || !(value > 0) || !std::isfinite(value) || bits == 0)
      return error(Code::kInvalidArgument, "'", part, "' is no rate; give Mbit or Gbit, as in 100Mbit,1Gbit");
    all.push_back({part, value * bits / kBitsPerByte});
  }
  return all;
}

Status check_address(const std::string& value) {
  return parse_host_port(value).status();
}

Status check_addresses(const std::string& value) {
  return parse_addresses(value).status();
}

Status check_node_counts(const std::string& value) {
  return parse_node_counts(value).status();
}

Status check_bandwidths(const std::string& value) {
  return parse_bandwidths(value).status();
}

Status check_etcd(const std::string& value) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (value.starts_with(scheme) && value.size() > scheme.size() && value[scheme.size()] != '/') return {};
  if (value.find('/') == value.npos && parse_host_port(value).ok()) return {};
  return error(Code::kInvalidArgument, "no address of an etcd; give one such as http://127.0.0.1:2379");
}

std::vector<std::string> with_rank(std::vector<std::string> words, int64_t rank) {
  const std::string number = std::to_string(rank);
  for (std::string& word : words)
    for (size_t at = word.find(kRankMark); at != std::string::npos; at = word.find(kRankMark, at))
      word.replace(at, kRankMark.size(), number);
  return words;
}

Status check_half_life(const std::string& value) {
  return HalfLife::parse(value).status();
}

Status check_language(const std::string& value) {
  return LanguageFilter::create({.wanted = {value}}).status();
}

Status check_moment(const std::string& value) {
  const auto [step, rest, good] = parse_front<int64_t>(value);
  if ((good && rest.empty()) || parse_time(value).ok()) return {};
  return error(Code::kInvalidArgument,
               "neither a step nor a time; try a step such as 120 or a date such as 2024-05-01");
}

Status check_stem(const std::string& value) {
  return Stemmer::open(value).status();
}

}  // namespace streamvec::cli
