// Values that are texts with a form of their own: what they mean, or what is wrong with them. Whatever can be said of a
// value alone is said here, so that it is misuse (options.h). All give kInvalidArgument for anything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec::cli {

// "a:1,b:2".
Result<std::vector<std::string>> parse_addresses(const std::string& list);
// "4,16,64", each 1 to 4096.
Result<std::vector<int32_t>> parse_node_counts(const std::string& list);

struct Bandwidth {
  std::string name;  // as it was typed
  double bytes_per_s = 0;
};
// "100Mbit,1Gbit".
Result<std::vector<Bandwidth>> parse_bandwidths(const std::string& list);

// What stands in a word for the number of a cluster's node.
inline constexpr std::string_view kRankMark = "{rank}";
std::vector<std::string> with_rank(std::vector<std::string> words, int64_t rank);

Status check_address(const std::string& value);  // HOST:PORT
Status check_addresses(const std::string& value);
Status check_node_counts(const std::string& value);
Status check_bandwidths(const std::string& value);
Status check_etcd(const std::string& value);       // http(s)://HOST..., HOST:PORT
Status check_half_life(const std::string& value);  // 5M, 12h
Status check_language(const std::string& value);   // en
Status check_moment(const std::string& value);     // a step or a time
Status check_stem(const std::string& value);       // english

}  // namespace streamvec::cli
