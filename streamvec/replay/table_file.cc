#include "streamvec/replay/table_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace streamvec {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::string_view kMagic = "svreplay";
constexpr uint32_t kVersion = 1;
constexpr size_t kPieceBytes = size_t{1} << 20;

// What ReplayWeights keeps weights in, with room to spare: quotients of any two are floats.
bool is_weight(float weight) {
  return weight >= 0x1p-70f && weight <= 0x1p70f;
}

// What a chunk starts with.
struct HeldHeader {
  uint64_t key, stamp, record;
  int64_t time_s;
  double t;
  int32_t source;
  float weight;
  uint32_t times_sampled, slot_count, sentence_count, padding;
};
static_assert(sizeof(HeldHeader) == 64 && std::is_trivially_copyable_v<HeldHeader>);

struct Header {
  uint64_t next_key;
  double owed;
  int64_t inserted, sampled;
  double half_life;
  int64_t landmark;
  double in_order_credit;
  int64_t bytes_wanted;
  uint64_t seed, draws;
  int64_t evicted, evicted_unsampled, erased, priorities_refused;
  uint64_t count;
  float mean;
  uint32_t padding;
};
static_assert(sizeof(Header) == 128 && std::is_trivially_copyable_v<Header>);

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Header header_of(const ReplaySnapshot& snapshot) {
  return {.next_key = snapshot.next_key,
          .owed = snapshot.limiter.owed,
          .inserted = snapshot.limiter.inserted,
          .sampled = snapshot.limiter.sampled,
          .half_life = snapshot.weights.half_life,
          .landmark = snapshot.weights.landmark,
          .in_order_credit = snapshot.in_order_credit,
          .bytes_wanted = snapshot.bytes_wanted,
          .seed = snapshot.seed,
          .draws = snapshot.draws,
          .evicted = snapshot.evicted,
          .evicted_unsampled = snapshot.evicted_unsampled,
          .erased = snapshot.erased,
          .priorities_refused = snapshot.priorities_refused,
          .count = snapshot.held.size(),
          .mean = snapshot.weights.mean,
          .padding = 0};
}

void append(const ReplaySnapshot::Held& held, std::string& out) {
  const ReplayItem& item = *held.item;
  const HeldHeader header{.key = held.key,
                          .stamp = item.stamp,
                          .record = item.record,
                          .time_s = item.time_s,
                          .t = item.t,
                          .source = item.source,
                          .weight = held.weight,
                          .times_sampled = held.times_sampled,
                          .slot_count = static_cast<uint32_t>(item.chunk.slots.size()),
                          .sentence_count = static_cast<uint32_t>(item.chunk.sentence_ends.size()),
                          .padding = 0};
  out.append(bytes_of(header)).append(bytes_of(item.chunk.slots)).append(bytes_of(item.chunk.sentence_ends));
}

// Takes values off the front of bytes that may be damaged.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - offset_; }
  template <typename... Parts>
  Status damaged(const Parts&... parts) const {
    return error(Code::kDataLoss, "replay state, byte ", offset_, ": ", parts...);
  }
  Status take(size_t count, char* to) {
    if (count > left()) return damaged("cut short, ", count, " bytes wanted, ", left(), " left");
    std::copy_n(bytes_.data() + offset_, count, to);
    offset_ += count;
    return {};
  }
  template <typename T>
  Status take(T& value) {
    return take(sizeof(T), reinterpret_cast<char*>(&value));
  }
  template <typename T>
  Status take(size_t count, std::vector<T>& values) {
    if (count > left() / sizeof(T)) return damaged("cut short, ", count, " numbers wanted, ", left(), " bytes left");
    values.resize(count);
    return take(count * sizeof(T), reinterpret_cast<char*>(values.data()));
  }

 private:
  std::string_view bytes_;
  size_t offset_ = 0;
};

Status check_start(Reader& reader) {
  char magic[kMagic.size()];
  STREAMVEC_RETURN_IF_ERROR(reader.take(sizeof(magic), magic));
  if (std::string_view(magic, sizeof(magic)) != kMagic) return reader.damaged("this is no replay state");
  uint32_t version = 0;
  STREAMVEC_RETURN_IF_ERROR(reader.take(version));
  if (version != kVersion) return reader.damaged("version ", version, ", this program reads ", kVersion);
  return {};
}

bool is_possible(const Header& header) {
  return header.next_key < uint64_t{1} << 62 && std::isfinite(header.owed) && header.inserted >= 0 &&
         header.sampled >= 0 && header.half_life > 0 && std::abs(static_cast<double>(header.landmark)) <= 0x1p62 &&
         header.in_order_credit >= 0 && header.in_order_credit <= 2 && header.bytes_wanted >= 0 &&
         header.bytes_wanted < int64_t{1} << 62 && (header.mean == 0 || is_weight(header.mean)) &&
         header.evicted >= 0 && header.evicted_unsampled >= 0 && header.erased >= 0 && header.priorities_refused >= 0;
}

ReplaySnapshot snapshot_of(const Header& header) {
  ReplaySnapshot snapshot;
  snapshot.next_key = header.next_key;
  snapshot.limiter = {.owed = header.owed, .inserted = header.inserted, .sampled = header.sampled};
  snapshot.weights = {.mean = header.mean, .half_life = header.half_life, .landmark = header.landmark};
  snapshot.in_order_credit = header.in_order_credit;
  snapshot.bytes_wanted = header.bytes_wanted;
  snapshot.seed = header.seed;
  snapshot.draws = header.draws;
  snapshot.evicted = header.evicted;
  snapshot.evicted_unsampled = header.evicted_unsampled;
  snapshot.erased = header.erased;
  snapshot.priorities_refused = header.priorities_refused;
  return snapshot;
}

bool is_possible(const Chunk& chunk) {
  const auto& ends = chunk.sentence_ends;
  if (std::any_of(chunk.slots.begin(), chunk.slots.end(), [](Slot slot) { return slot < 0; })) return false;
  if (std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) != ends.end()) return false;
  return ends.empty() || (ends.front() >= 0 && static_cast<size_t>(ends.back()) <= chunk.slots.size());
}

Status read_held(Reader& reader, ReplaySnapshot& snapshot) {
  HeldHeader header;
  STREAMVEC_RETURN_IF_ERROR(reader.take(header));
  const bool rises = snapshot.held.empty() || header.key > snapshot.held.back().key;
  if (!rises || header.key >= snapshot.next_key || !std::isfinite(header.t) || !is_weight(header.weight))
    return reader.damaged("an impossible chunk");
  auto item = std::make_shared<ReplayItem>();
  item->stamp = header.stamp;
  item->record = header.record;
  item->source = header.source;
  item->time_s = header.time_s;
  item->t = header.t;
  STREAMVEC_RETURN_IF_ERROR(reader.take(header.slot_count, item->chunk.slots));
  STREAMVEC_RETURN_IF_ERROR(reader.take(header.sentence_count, item->chunk.sentence_ends));
  if (!is_possible(item->chunk)) return reader.damaged("impossible slots or sentence ends");
  snapshot.held.push_back({header.key, std::move(item), header.weight, header.times_sampled});
  return {};
}

}  // namespace

Status write_replay(const ReplaySnapshot& snapshot, const std::function<Status(std::string_view)>& sink) {
  std::string piece(kMagic);
  piece.append(bytes_of(kVersion)).append(bytes_of(header_of(snapshot)));
  for (const ReplaySnapshot::Held& held : snapshot.held) {
    append(held, piece);
    if (piece.size() < kPieceBytes) continue;
    STREAMVEC_RETURN_IF_ERROR(sink(piece));
    piece.clear();
  }
  return sink(piece);
}

Result<ReplaySnapshot> read_replay(std::string_view bytes) {
  Reader reader(bytes);
  STREAMVEC_RETURN_IF_ERROR(check_start(reader));
  Header header;
  STREAMVEC_RETURN_IF_ERROR(reader.take(header));
  if (!is_possible(header)) return reader.damaged("impossible counters");
  if (header.count > reader.left() / sizeof(HeldHeader))
    return reader.damaged("cut short, ", header.count, " chunks wanted, ", reader.left(), " bytes left");
  ReplaySnapshot snapshot = snapshot_of(header);
  snapshot.held.reserve(header.count);
  for (uint64_t i = 0; i < header.count; ++i) STREAMVEC_RETURN_IF_ERROR(read_held(reader, snapshot));
  if (reader.left() > 0) return reader.damaged(reader.left(), " bytes too many");
  return snapshot;
}

}  // namespace streamvec
