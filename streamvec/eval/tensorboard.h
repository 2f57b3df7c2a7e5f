// Event files that TensorBoard draws: scalars over steps. The format is TFRecord (length, masked CRC32C of the length,
// bytes, masked CRC32C of the bytes) around Event messages of protobuf, of which a scalar needs five fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"

namespace streamvec {

struct Scalar {
  std::string tag;  // "quality/pip_relative": a card named by the last part in the group of the first
  double value = 0;
};

// CRC-32C (Castagnoli), as iSCSI and TFRecord have it.
uint32_t crc32c(std::string_view bytes);
// One record of a TFRecord file.
std::string tf_record(std::string_view bytes);
// Event messages: the first of every file, and scalars of one step.
std::string version_event(double time_s);
std::string scalar_event(double time_s, int64_t step, std::span<const Scalar> scalars);

// Writes DIR/events.out.tfevents.<seconds>.streamvec.<pid>.<n>; each call reaches the file at once, nothing is synced.
// After bytes_max a new file begins, and the oldest of ours past files_max is removed. Not thread-safe.
class EventFile {
 public:
  struct Options {
    int64_t bytes_max = int64_t{16} << 20;
    int files_max = 16;  // in the directory
  };
  // Makes the directory if it is not there; the file comes with the first write.
  static Result<EventFile> open(const std::string& dir, Options options);
  static Result<EventFile> open(const std::string& dir) { return open(dir, Options()); }

  // Values that are not finite are left out.
  Status write(double time_s, int64_t step, std::span<const Scalar> scalars);

 private:
  EventFile(std::string dir, Options options) : dir_(std::move(dir)), options_(options) {}
  Status begin_file(double time_s);
  Status append(std::string_view event);

  std::string dir_, path_;
  Options options_;
  FileHandle file_;
  int64_t size_ = 0;
  int files_begun_ = 0;
};

}  // namespace streamvec
