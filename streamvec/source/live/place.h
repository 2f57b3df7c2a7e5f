// Where a live stream stands, and which records of an overlap were seen before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "streamvec/core/status.h"

namespace streamvec {

// What a record says about its own place in the stream.
struct RecordPlace {
  std::string token = {};              // hands the server back its place (Last-Event-ID, a cursor); "" for none
  std::string lane = {};               // records of one lane are numbered in order
  std::optional<int64_t> number = {};  // in its lane; records may share one
  uint64_t hash = 0;                   // of what makes the record itself
};

// A server that is asked to go on after a place often sends some records again. With numbers, those up to the last
// number of their lane are repeats (of equal numbers those whose hash was met); the first greater number ends the
// overlap, and from there every record is new, in whatever order they come. Without numbers, records that are among
// the last 16 are repeats within the first 1,000 after a connect, provided that they have a token.
// Memory: 256 lanes, 4,096 hashes each. Not thread-safe; copies are independent.
class Place {
 public:
  // The records that follow come from a new connection.
  void connected();
  // True when the record was seen before; otherwise the place moves on to it.
  bool repeated(const RecordPlace& record);

  const std::string& token() const { return token_; }
  // The greatest number of all lanes, 0 before the first.
  int64_t number() const;
  // As one JSON object, with the bytes read so far.
  std::string cursor(int64_t bytes) const;
  // "" is the beginning. kInvalidArgument for what cursor() did not make.
  static Result<Place> parse(const std::string& cursor, int64_t& bytes);

 private:
  struct Lane {
    int64_t number = 0;
    std::vector<uint64_t> hashes;  // of the records with this number
    bool overlapping = false;      // no greater number was met since the connect
  };
  bool repeated_in_lane(const RecordPlace& record);
  bool repeated_by_hash(const RecordPlace& record);

  std::string token_;
  std::map<std::string, Lane> lanes_;
  std::vector<uint64_t> recent_;  // hashes of the last records without a number, oldest first
  std::set<uint64_t> before_connect_;
  int64_t since_connect_ = 0;
};

}  // namespace streamvec
