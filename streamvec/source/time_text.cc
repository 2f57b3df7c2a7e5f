#include "streamvec/source/time_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace streamvec {
namespace {

struct Moment {
  int64_t year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, zone_minutes = 0;
};

// Takes what it recognises off the front of a text; each function leaves it as it was when it returns false.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool ended() const { return rest_.empty(); }
  bool skip(char mark) {
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_[0])) rest_.remove_prefix(1);
  }
  size_t digits() const {
    return run([](unsigned char byte) { return std::isdigit(byte) != 0; });
  }
  // Exactly the next `count` digits; more may follow.
  bool number(size_t count, int64_t& value) {
    if (digits() < count) return false;
    std::from_chars(rest_.data(), rest_.data() + count, value);
    rest_.remove_prefix(count);
    return true;
  }
  // All of one to `count_max` digits.
  bool whole_number(size_t count_max, int64_t& value) {
    const size_t count = digits();
    return count > 0 && count <= count_max && number(count, value);
  }
  std::string_view word() {
    const size_t size = run([](unsigned char byte) { return std::isalpha(byte) != 0; });
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  static bool is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

 private:
  template <typename Accepts>
  size_t run(Accepts accepts) const {
    size_t size = 0;
    while (size < rest_.size() && accepts(static_cast<unsigned char>(rest_[size]))) ++size;
    return size;
  }
  std::string_view rest_;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && Reader::is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && Reader::is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

int64_t days_in(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<size_t>(month - 1)];
}

// Days since 1970 in the Gregorian calendar, carried back before its introduction. Years are counted from March, so
// that the leap day is the last of its year.
int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month > 2 ? year : year - 1;
  const int64_t month_from_march = (month + 9) % 12;
  const int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
  constexpr int64_t kMarch0000To1970 = 719'468;
  return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - kMarch0000To1970;
}

bool is_valid(const Moment& moment) {
  return moment.year >= 1 && moment.year <= 9999 && moment.month >= 1 && moment.month <= 12 && moment.day >= 1 &&
         moment.day <= days_in(moment.year, moment.month) && moment.hour <= 24 && moment.minute <= 59 &&
         moment.second <= 60;
}

constexpr int64_t kYear1 = -62'135'596'800, kYear10000 = 253'402'300'800;

int64_t seconds_of(const Moment& moment) {
  const int64_t minutes = moment.hour * 60 + moment.minute - moment.zone_minutes;
  return days_since_1970(moment.year, moment.month, moment.day) * 86'400 + minutes * 60 + moment.second;
}

// A zone or a leap second can lead out of the years that the date is in.
Result<int64_t> checked_seconds_of(const Moment& moment) {
  const int64_t seconds = seconds_of(moment);
  if (seconds < kYear1 || seconds >= kYear10000)
    return error(Code::kInvalidArgument, "a time of the year ", moment.year,
                 " that is not in the years 1 to 9999 in UTC");
  return seconds;
}

bool read_offset(Reader& reader, int64_t& minutes) {
  const bool west = reader.skip('-');
  if (!west && !reader.skip('+')) return false;
  int64_t hour = 0, minute = 0;
  if (!reader.number(2, hour)) return false;
  reader.skip(':');
  if (reader.digits() > 0 && !reader.number(2, minute)) return false;
  if (hour > 23 || minute > 59) return false;
  minutes = (west ? -1 : 1) * (hour * 60 + minute);
  return true;
}

// "Z", "GMT", "EST", "+02:00", and nothing at all. A name that is not known counts as UTC, as RFC 2822 has it.
bool read_zone(Reader& reader, int64_t& minutes) {
  reader.skip_blanks();
  if (reader.ended()) return true;
  const std::string_view name = reader.word();
  struct Zone {
    std::string_view name;
    int64_t hours;
  };
  constexpr Zone kZones[] = {{"EST", -5}, {"EDT", -4}, {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6},
                             {"PST", -8}, {"PDT", -7}, {"CET", 1},  {"CEST", 2}, {"BST", 1},  {"KST", 9},
                             {"JST", 9},  {"MSK", 3},  {"EET", 2},  {"EEST", 3}, {"IST", 5}};
  for (const Zone& zone : kZones)
    if (same_letters(zone.name, name)) minutes = zone.hours * 60 + (same_letters(name, "IST") ? 30 : 0);
  if (!name.empty() && reader.ended()) return true;
  return read_offset(reader, minutes);
}

// "12:30", "12:30:00.25", "123000"; whatever zone follows.
bool read_clock(Reader& reader, Moment& moment) {
  if (!reader.number(2, moment.hour) && !reader.whole_number(1, moment.hour)) return false;
  const bool colons = reader.skip(':');
  if (!reader.number(2, moment.minute)) return false;
  const bool seconds = colons ? reader.skip(':') : reader.digits() > 0;
  if (seconds && !reader.number(2, moment.second)) return false;
  if (seconds && (reader.skip('.') || reader.skip(','))) {
    int64_t fraction = 0;
    while (reader.digits() > 0) reader.number(1, fraction);
  }
  return read_zone(reader, moment.zone_minutes);
}

bool read_iso(std::string_view text, Moment& moment) {
  Reader reader(text);
  if (!reader.number(4, moment.year)) return false;
  const bool dashes = reader.skip('-') || reader.skip('/');
  if (reader.ended()) return !dashes;
  if (!reader.number(2, moment.month)) return false;
  if (dashes && !reader.ended() && !reader.skip('-') && !reader.skip('/')) return false;
  if (!reader.ended() && !reader.number(2, moment.day)) return false;
  moment.month = std::max<int64_t>(moment.month, 1);
  moment.day = std::max<int64_t>(moment.day, 1);
  if (reader.ended()) return dashes || text.size() == 8;
  if (!reader.skip('T') && !reader.skip('t') && !reader.skip(' ') && !reader.skip('_')) return false;
  reader.skip_blanks();
  return read_clock(reader, moment) && reader.ended();
}

bool read_month(Reader& reader, int64_t& month) {
  constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                        "jul", "aug", "sep", "oct", "nov", "dec"};
  const std::string_view name = reader.word();
  const auto found = std::find_if(kMonths.begin(), kMonths.end(),
                                  [&](std::string_view known) { return same_letters(known, name.substr(0, 3)); });
  if (found == kMonths.end()) return false;
  month = found - kMonths.begin() + 1;
  return true;
}

// Years of two and three digits as RFC 2822 reads them.
bool read_year(Reader& reader, int64_t& year) {
  const size_t digits = reader.digits();
  if (digits < 2 || !reader.whole_number(4, year)) return false;
  if (digits == 2) year += year < 50 ? 2000 : 1900;
  if (digits == 3) year += 1900;
  return true;
}

bool read_mail(std::string_view text, Moment& moment) {
  Reader reader(text);
  if (!reader.word().empty()) reader.skip(',');
  reader.skip_blanks();
  const auto part = [&] { return reader.skip('-') || (reader.skip_blanks(), true); };
  if (!reader.whole_number(2, moment.day) || !part() || !read_month(reader, moment.month) || !part()) return false;
  if (!read_year(reader, moment.year)) return false;
  reader.skip_blanks();
  if (reader.ended()) return true;
  return read_clock(reader, moment) && reader.ended();
}

// What asctime() and the web's older APIs write: "Wed May  1 12:30:00 [+0000] 2024".
bool read_ctime(std::string_view text, Moment& moment) {
  Reader reader(text);
  if (reader.word().empty()) return false;
  reader.skip_blanks();
  if (!read_month(reader, moment.month)) return false;
  reader.skip_blanks();
  if (!reader.whole_number(2, moment.day)) return false;
  reader.skip_blanks();
  const size_t year_at = reader.rest().rfind(' ');
  if (year_at == std::string_view::npos) return false;
  Reader clock(trimmed(reader.rest().substr(0, year_at))), year(reader.rest().substr(year_at + 1));
  return read_clock(clock, moment) && clock.ended() && year.number(4, moment.year) && year.ended();
}

bool is_number(std::string_view text, double& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Result<int64_t> time_of_number(double value) {
  constexpr double kSecondsMax = 1e11;
  double seconds = value;
  for (int unit = 0; unit < 3 && std::abs(seconds) >= kSecondsMax; ++unit) seconds /= 1000;
  seconds = std::floor(seconds);
  if (!(seconds >= kYear1 && seconds < kYear10000))
    return error(Code::kInvalidArgument, value, " is no time: it is not in the years 1 to 9999");
  return static_cast<int64_t>(seconds);
}

Result<int64_t> parse_time(std::string_view text) {
  text = trimmed(text);
  Moment moment;
  if (read_iso(text, moment) && is_valid(moment)) return checked_seconds_of(moment);
  double value = 0;
  if (is_number(text, value)) return time_of_number(value);
  if (read_mail(text, moment = {}) && is_valid(moment)) return checked_seconds_of(moment);
  if (read_ctime(text, moment = {}) && is_valid(moment)) return checked_seconds_of(moment);
  return error(Code::kInvalidArgument, "\"", std::string(text.substr(0, 80)),
               "\" is no time; times are written 2024-05-01T12:30:00Z, Wed, 01 May 2024 12:30:00 GMT, 2024-05 or as "
               "seconds since 1970");
}

}  // namespace streamvec
