// The saved state of a StreamVocabulary: a magic number, the fields below, and the XXH3 sum of all bytes before it.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <span>
#include <sstream>

#include "streamvec/core/durable_file.h"
#include "streamvec/vocab/state_bytes.h"
#include "streamvec/vocab/stream_vocabulary.h"

namespace streamvec {
namespace {

constexpr uint64_t kMagic = 0x31'62'61'63'6f'76'76'73;  // "svvocab1"

uint64_t sum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.update(bytes);
  return checksum.value();
}

Status damaged(size_t offset, const char* what) {
  return error(Code::kDataLoss, "the saved vocabulary is damaged at byte ", offset, ": ", what,
               "; try an older checkpoint");
}

// The bytes without the sum, once they agree with it.
Result<std::string_view> checked(std::string_view bytes) {
  if (bytes.size() < sizeof(uint64_t)) return damaged(bytes.size(), "it ends there");
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  if (StateReader(bytes.substr(content.size())).get<uint64_t>() != sum_of(content))
    return damaged(content.size(), "the checksum does not agree");
  return content;
}

bool is_weight(double value) {
  return value >= 0 && std::isfinite(value);
}

// What follows the half-life. States of earlier versions do not have its unit.
constexpr uint8_t kPlain = 1, kTokens = 2, kSeconds = 4, kUnit = kTokens | kSeconds;

uint8_t unit_of(const StreamVocabulary::Options& options) {
  if (std::isinf(options.half_life)) return 0;
  return options.half_life_seconds ? kSeconds : kTokens;
}

// As --half-life has it, in the largest unit that it is a whole number of.
std::string half_life_text(double value, uint8_t unit) {
  struct Unit {
    double size;
    const char* letter;
  };
  constexpr Unit kTimes[] = {{86'400, "d"}, {3'600, "h"}, {60, "m"}, {1, "s"}};
  constexpr Unit kCounts[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
  if (std::isinf(value)) return "never";
  const std::span<const Unit> units = unit == kSeconds ? std::span(kTimes) : std::span(kCounts);
  auto largest = std::find_if(units.begin(), units.end(), [&](Unit u) { return std::fmod(value, u.size) == 0; });
  if (largest == units.end()) --largest;
  std::ostringstream text;
  text << std::setprecision(15) << value / largest->size << largest->letter;
  return text.str();
}

constexpr double kCountMax = 0x1p53;

// Those that were admitted meanwhile are forgotten: they have no count.
void write_candidates(const WordCounter& candidates, StateWriter& out) {
  uint64_t counted = 0;
  for (int64_t type = 0; type < candidates.types(); ++type) counted += candidates.count_at(type) > 0;
  out.put(counted);
  for (int64_t type = 0; type < candidates.types(); ++type) {
    if (candidates.count_at(type) == 0) continue;
    out.put_text(candidates.word_at(type));
    out.put(candidates.count_at(type));
  }
}

void write_forms(const FormCache& forms, StateWriter& out) {
  uint64_t spellings = 0;
  forms.for_each([&](auto, const auto&) { ++spellings; });
  out.put(spellings);
  forms.for_each([&](std::string_view spelling, const std::optional<std::string_view>& form) {
    out.put_text(spelling);
    out.put_text(form.value_or(""));  // a form is never empty
  });
}

}  // namespace

// Reads and writes the parts, in one order.
class StreamVocabulary::State {
 public:
  static void write(const StreamVocabulary& from, StateWriter& out);
  static Result<StreamVocabulary> read(Options options, StateReader& in);

 private:
  static void read_slots(StateReader& in, StreamVocabulary& to);
  static void read_leavers(StateReader& in, StreamVocabulary& to);
  static void read_candidates(StateReader& in, StreamVocabulary& to);
  static void read_sketch(StateReader& in, uint64_t seed, StreamVocabulary& to);
  static void read_forms(StateReader& in, StreamVocabulary& to);
};

void StreamVocabulary::State::write(const StreamVocabulary& from, StateWriter& out) {
  out.put(kMagic);
  out.put(from.options_.seed);
  out.put(from.options_.half_life);
  out.put(static_cast<uint8_t>((from.plain() ? kPlain : 0) | unit_of(from.options_)));
  out.put(from.decay_.landmark());
  out.put(from.now_);
  out.put(from.held_sum_);
  const Statistics& statistics = from.statistics_;
  for (const int64_t value : {statistics.tokens, statistics.outside, statistics.admitted, statistics.evicted})
    out.put(value);
  out.put(from.stamp());
  out.put(static_cast<uint64_t>(from.held_.size()));
  for (Slot slot = 0; slot < from.size(); ++slot) {
    const Held& held = from.held_[static_cast<size_t>(slot)];
    out.put(held.count);
    out.put(held.seen);
    out.put(from.born(slot));
    out.put_text(from.word(slot));
  }
  out.put(static_cast<uint64_t>(from.leavers_.size() - from.leavers_gone_));
  for (size_t i = from.leavers_gone_; i < from.leavers_.size(); ++i) {
    out.put(from.leavers_[i].count);
    out.put(from.leavers_[i].seen);
    out.put(from.leavers_[i].slot);
  }
  write_candidates(from.candidates_, out);
  out.put(static_cast<uint64_t>(from.sketch_ ? from.sketch_->width() : 0));
  if (from.sketch_) out.put_all(from.sketch_->cells());
  write_forms(from.forms_, out);
}

Result<StreamVocabulary> StreamVocabulary::State::read(Options options, StateReader& in) {
  if (in.get<uint64_t>() != kMagic) return damaged(0, "it does not begin as a saved vocabulary");
  options.seed = in.get<uint64_t>();
  const auto half_life = in.get<double>();
  const auto flags = in.get<uint8_t>();
  const bool plain = (flags & kPlain) != 0;
  const uint8_t asked_unit = unit_of(options), unit = (flags & kUnit) != 0 ? flags & kUnit : asked_unit;
  if (!in.ok() || !(half_life > 0)) return damaged(in.offset(), "no half-life");
  if (half_life != options.half_life || unit != asked_unit)
    return error(Code::kFailedPrecondition, "the saved vocabulary has a half-life of ", half_life_text(half_life, unit),
                 ", --half-life asks for ", half_life_text(options.half_life, asked_unit),
                 "; try the same, or another --out");
  if (!plain) options.sketch_bytes = 1;  // read_sketch() makes it as large as it was
  StreamVocabulary to(std::move(options));
  if (plain != to.plain())
    return error(Code::kFailedPrecondition, "the saved vocabulary was kept ", plain ? "without" : "with",
                 " --vocab-max or --half-life; try it ", plain ? "without" : "with", " them, or another --out");
  const auto landmark = in.get<int64_t>();
  to.now_ = in.get<double>();
  if (!in.ok() || std::abs(static_cast<double>(landmark)) > ForwardDecay::kHalfLivesMax || !std::isfinite(to.now_))
    return damaged(in.offset(), "no time");
  to.decay_.set_landmark(landmark);
  to.now_weight_ = to.decay_.weight(to.now_);
  const auto held_sum = in.get<double>();
  for (int64_t* value :
       {&to.statistics_.tokens, &to.statistics_.outside, &to.statistics_.admitted, &to.statistics_.evicted})
    *value = in.get<int64_t>();
  to.births_->set_count(in.get<uint64_t>());
  if (!in.ok() || !(to.now_weight_ >= 1) || !is_weight(to.now_weight_) || !is_weight(held_sum))
    return damaged(in.offset(), "no counts");
  StateReader ahead = in;
  if (const int64_t slots = ahead.get_count(26); slots > to.slots_max_)
    return error(Code::kFailedPrecondition, "the saved vocabulary has ", slots, " words, --vocab-max asks for ",
                 to.slots_max_, "; try --vocab-max ", slots, " or another --out");
  const uint64_t seed = to.options_.seed;
  read_slots(in, to);
  to.held_sum_ = held_sum;
  read_leavers(in, to);
  read_candidates(in, to);
  read_sketch(in, seed, to);
  read_forms(in, to);
  if (!in.ok() || !in.at_end()) return damaged(in.offset(), "what follows cannot be");
  return to;
}

void StreamVocabulary::State::read_slots(StateReader& in, StreamVocabulary& to) {
  const int64_t slots = in.get_count(26);
  for (Slot slot = 0; slot < slots && in.ok(); ++slot) {
    const auto count = in.get<double>();
    to.call_time_ = in.get<double>();
    const auto born = in.get<uint64_t>();
    const std::string_view word = in.get_text();
    const bool possible = count >= 0 && count <= kCountMax * to.now_weight_ && std::isfinite(to.call_time_) &&
                          born <= to.stamp() && !word.empty();
    if (!in.ok() || !possible || to.find(word) != kNoSlot) return in.fail();
    to.append(word, to.hash_(word), count);
    to.births_->set(slot, born);
  }
}

void StreamVocabulary::State::read_leavers(StateReader& in, StreamVocabulary& to) {
  const int64_t leavers = in.get_count(20);
  if (leavers > to.size()) return in.fail();
  for (int64_t i = 0; i < leavers && in.ok(); ++i) {
    Leaver& leaver = to.leavers_.emplace_back();
    leaver.count = in.get<double>();
    leaver.seen = in.get<double>();
    leaver.slot = in.get<Slot>();
    if (!is_weight(leaver.count) || leaver.slot < 0 || leaver.slot >= to.size()) return in.fail();
  }
}

void StreamVocabulary::State::read_candidates(StateReader& in, StreamVocabulary& to) {
  const int64_t types = in.get_count(10);
  for (int64_t type = 0; type < types && in.ok(); ++type) {
    const std::string_view word = in.get_text();
    const auto times = in.get<int64_t>();
    if (!in.ok() || word.empty() || times <= 0 || static_cast<double>(times) > kCountMax) return in.fail();
    to.candidates_.add(word, times);
  }
}

void StreamVocabulary::State::read_sketch(StateReader& in, uint64_t seed, StreamVocabulary& to) {
  constexpr int64_t kColumnBytes = AdmissionSketch::kDepth * sizeof(float);
  const int64_t width = in.get_count(kColumnBytes);
  if (!in.ok() || (width > 0) != to.sketch_.has_value()) return in.fail();
  if (width == 0) return;
  to.sketch_.emplace(width * kColumnBytes, mix(seed, kSketchSeed));
  to.options_.sketch_bytes = width * kColumnBytes;
  if (to.sketch_->width() != width) return in.fail();
  in.get_all(to.sketch_->cells());
  for (const float sum : to.sketch_->cells())
    if (!is_weight(sum)) return in.fail();
}

void StreamVocabulary::State::read_forms(StateReader& in, StreamVocabulary& to) {
  const int64_t spellings = in.get_count(4);
  for (int64_t i = 0; i < spellings && in.ok(); ++i) {
    const std::string_view spelling = in.get_text();
    const std::string_view form = in.get_text();
    if (!in.ok() || spelling.empty()) return in.fail();
    const auto kept = form.empty() ? std::nullopt : std::optional(form);
    if (!to.forms_.restore(spelling, kept, to.hash_(spelling))) return in.fail();
  }
}

std::string StreamVocabulary::save() const {
  StateWriter out;
  out.reserve(static_cast<size_t>(memory_bytes()));
  State::write(*this, out);
  out.put(sum_of(out.bytes()));
  return out.take();
}

Result<StreamVocabulary> StreamVocabulary::restore(Options options, std::string_view bytes) {
  STREAMVEC_ASSIGN_OR_RETURN(const std::string_view content, checked(bytes));
  StateReader in(content);
  return State::read(std::move(options), in);
}

}  // namespace streamvec
