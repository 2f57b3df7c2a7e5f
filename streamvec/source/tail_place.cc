#include "streamvec/source/tail_place.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "streamvec/core/durable_file.h"
#include "streamvec/source/decoded_file.h"

namespace streamvec {

std::string TailPlace::text() const {
  std::string out;
  for (const int64_t number :
       {static_cast<int64_t>(inode), offset, mtime_ns, bytes_read, static_cast<int64_t>(head_size)})
    out += std::to_string(number) + ' ';
  return out + head_sum + ' ' + std::to_string(last_size) + ' ' + last_sum;
}

Result<TailPlace> TailPlace::parse(const std::string& text) {
  TailPlace place;
  std::istringstream in(text);
  in >> place.inode >> place.offset >> place.mtime_ns >> place.bytes_read >> place.head_size >> place.head_sum >>
      place.last_size >> place.last_sum;
  const bool good = !in.fail() && in.peek() == EOF && place.offset > 0 && place.bytes_read >= 0 &&
                    place.head_size <= kHeadBytes && place.last_size <= kLastBytes &&
                    static_cast<int64_t>(std::max(place.head_size, place.last_size)) <= place.offset;
  if (!good) return error(Code::kInvalidArgument, "not a cursor of a followed file: ", text.substr(0, 200));
  return place;
}

bool TailPlace::is_in(const std::string& path) const {
  Result<DecodedFile> file = DecodedFile::open(path);
  if (!file.ok()) return false;
  std::string head(head_size, '\0'), last(last_size, '\0');
  const Result<size_t> got = file->read(head);
  if (!got.ok() || *got != head.size() || Checksum::of(head) != head_sum) return false;
  const int64_t before_last = offset - static_cast<int64_t>(last.size());
  if (before_last < static_cast<int64_t>(head.size())) {  // they overlap: from the beginning
    file = DecodedFile::open(path);
    if (!file.ok() || !file->skip(before_last).ok()) return false;
  } else if (const Result<bool> there = file->skip(before_last - static_cast<int64_t>(head.size()));
             !there.ok() || !*there) {
    return false;
  }
  const Result<size_t> rest = file->read(last);
  return rest.ok() && *rest == last.size() && Checksum::of(last) == last_sum;
}

bool is_rotation_suffix(std::string_view suffix) {
  for (const std::string_view packed : {".gz", ".xz", ".zst", ".bz2"})
    if (suffix.ends_with(packed)) {
      suffix.remove_suffix(packed.size());
      break;
    }
  if (suffix.size() < 2 || std::string_view(".-_").find(suffix[0]) == std::string_view::npos) return false;
  return std::isdigit(static_cast<unsigned char>(suffix[1])) != 0 &&
         suffix.find_first_not_of("0123456789.-_:T") == std::string_view::npos;
}

}  // namespace streamvec
