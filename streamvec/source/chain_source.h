// Several sources, one after the other, as one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/source/source.h"

namespace streamvec {

// Reads the sources in the order given, each to its end. Its members must not mind being empty: that all of them are is
// an error here. Replayable when all members are. A cursor is JSON: the member's index and its own cursor.
class ChainSource : public Source {
 public:
  // REQUIRES: at least one source.
  explicit ChainSource(std::vector<std::unique_ptr<Source>> sources);

  Result<int64_t> read(int64_t count_max, Deadline deadline, std::vector<Document>& out) override;
  Status seek(const std::string& cursor) override;
  std::string saved(const std::string& cursor) const override;
  Status commit(const std::string& cursor) override;
  Capabilities capabilities() const override;
  std::string contents() const override;
  int64_t bytes_total() const override;  // -1 when it is unknown for one of them
  int64_t bytes_read() const override;
  std::string name() const override;
  std::vector<std::string> notes() const override;

 private:
  struct Place {
    size_t index = 0;
    std::string cursor;  // of that member
  };
  Result<Place> place_of(const std::string& cursor) const;
  static std::string cursor_of(const Place& place);

  std::vector<std::unique_ptr<Source>> sources_;
  size_t index_ = 0;  // of the one being read
  bool anything_read_ = false;
};

}  // namespace streamvec
