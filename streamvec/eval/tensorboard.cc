#include "streamvec/eval/tensorboard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unicode/utf8.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "streamvec/eval/append_file.h"

namespace streamvec {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.", kOurs = ".streamvec.";
constexpr std::string_view kVersion = "brain.Event:2";

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

// A CRC of data that holds CRCs is weak, so records store it turned and shifted.
uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  out.push_back(static_cast<char>(value));
}

// The wire types of protobuf.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_key(std::string& out, uint32_t field, Wire wire) {
  put_varint(out, field << 3 | wire);
}
void put_double(std::string& out, uint32_t field, double value) {
  put_key(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}
void put_float(std::string& out, uint32_t field, float value) {
  put_key(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// message Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
// message Summary { message Value { string tag = 1; float simple_value = 2; } repeated Value value = 1; }
std::string begin_event(double time_s) {
  std::string event;
  put_double(event, 1, time_s);
  return event;
}

// Strings of protobuf are UTF-8; a tag that is not keeps its ASCII.
std::string utf8(std::string tag) {
  const auto size = static_cast<int32_t>(tag.size());
  for (int32_t i = 0; i < size;) {
    UChar32 code_point = 0;
    U8_NEXT(tag.data(), i, size, code_point);
    if (code_point >= 0) continue;
    for (char& byte : tag) byte = static_cast<signed char>(byte) < 0 ? '?' : byte;
    break;
  }
  return tag;
}

// Our files in a directory, oldest first (the name begins with the time).
std::vector<std::string> our_files(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(dir, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename().string();
    if (name.starts_with(kPrefix) && name.find(kOurs) != name.npos) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t value = ~0u;
  for (const char byte : bytes) value = (value >> 8) ^ kTable[(value ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~value;
}

std::string tf_record(std::string_view bytes) {
  std::string record;
  put_little_endian(record, static_cast<uint64_t>(bytes.size()));
  put_little_endian(record, masked_crc(record));
  record += bytes;
  put_little_endian(record, masked_crc(bytes));
  return record;
}

std::string version_event(double time_s) {
  std::string event = begin_event(time_s);
  put_bytes(event, 3, kVersion);
  return event;
}

std::string scalar_event(double time_s, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    if (!std::isfinite(scalar.value)) continue;
    std::string value;
    put_bytes(value, 1, utf8(scalar.tag));
    put_float(value, 2, static_cast<float>(scalar.value));
    put_bytes(summary, 1, value);
  }
  std::string event = begin_event(time_s);
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  return event;
}

Result<EventFile> EventFile::open(const std::string& dir, Options options) {
  if (::mkdir(dir.c_str(), 0777) != 0 && errno != EEXIST) return file_error(errno, "create the directory", dir);
  return EventFile(dir, options);
}

Status EventFile::begin_file(double time_s) {
  path_ = dir_ + "/" + std::string(kPrefix) + std::to_string(static_cast<int64_t>(time_s)) + std::string(kOurs) +
          std::to_string(::getpid()) + "." + std::to_string(files_begun_++);
  STREAMVEC_ASSIGN_OR_RETURN(file_, open_for_append(path_));
  size_ = 0;
  const std::vector<std::string> names = our_files(dir_);
  for (size_t i = 0; i + static_cast<size_t>(std::max(1, options_.files_max)) < names.size(); ++i)
    ::unlink((dir_ + "/" + names[i]).c_str());
  return append(version_event(time_s));
}

Status EventFile::append(std::string_view event) {
  const std::string record = tf_record(event);
  size_ += static_cast<int64_t>(record.size());
  return append_all(file_, record, path_);
}

Status EventFile::write(double time_s, int64_t step, std::span<const Scalar> scalars) {
  if (file_.get() < 0 || size_ >= options_.bytes_max) STREAMVEC_RETURN_IF_ERROR(begin_file(time_s));
  return append(scalar_event(time_s, step, scalars));
}

}  // namespace streamvec
