#include "streamvec/text/iso_time.h"

#include <chrono>

namespace streamvec {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads on from its start.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // A number of least..most digits; -1 and nothing read when there are fewer.
  int number(size_t least, size_t most) {
    size_t length = 0;
    int value = 0;
    while (length < most && length < rest_.size() && is_digit(rest_[length]))
      value = value * 10 + (rest_[length++] - '0');
    if (length < least) return -1;
    rest_.remove_prefix(length);
    return value;
  }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  char take() {
    const char c = peek();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  bool take_if(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == any_of.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take_if(" \t\r\n")) {
    }
  }

 private:
  std::string_view rest_;
};

std::optional<int64_t> read_date(Reader& reader) {
  const int year = reader.number(4, 4);
  if (year < 1900 || year > 2200) return std::nullopt;
  const char separator = reader.peek();
  const bool separated = reader.take_if("-/.");
  const int month = separated ? reader.number(1, 2) : reader.number(2, 2);
  int day = 1;
  if (!separated || reader.peek() == separator) {
    if (separated) reader.take();
    day = separated ? reader.number(1, 2) : reader.number(2, 2);
  }
  if (month < 1 || day < 1 || is_digit(reader.peek())) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86'400};
}

// Seconds that "+09:00" is ahead of UTC; 0 for Z, UTC, nothing and nonsense.
int64_t read_zone(Reader& reader) {
  const char sign = reader.peek();
  if (sign != '+' && sign != '-') return 0;
  reader.take();
  const int hours = reader.number(2, 2);
  reader.take_if(":");
  const int minutes = reader.number(2, 2);
  if (hours < 0 || hours > 15 || minutes > 59) return 0;
  const int64_t ahead = hours * int64_t{3600} + (minutes < 0 ? 0 : minutes * 60);
  return sign == '-' ? -ahead : ahead;
}

// Seconds since midnight in UTC; 0 when no time follows.
int64_t read_clock(Reader& reader) {
  if (!reader.take_if("Tt")) reader.skip_spaces();
  const int hours = reader.number(1, 2);
  if (hours < 0 || hours > 24) return 0;
  reader.take_if(":");
  const int minutes = reader.number(2, 2);
  if (minutes < 0 || minutes > 59) return 0;
  int seconds = 0;
  if (reader.take_if(":") || is_digit(reader.peek())) seconds = reader.number(2, 2);
  if (seconds < 0 || seconds > 60) seconds = 0;
  if (reader.take_if(".,")) reader.number(1, 9);
  while (is_digit(reader.peek())) reader.take();
  reader.skip_spaces();
  return hours * int64_t{3600} + minutes * 60 + seconds - read_zone(reader);
}

}  // namespace

std::optional<int64_t> parse_iso_time(std::string_view text) {
  Reader reader(text);
  reader.skip_spaces();
  const std::optional<int64_t> date = read_date(reader);
  if (!date) return std::nullopt;
  return *date + read_clock(reader);
}

}  // namespace streamvec
