#include "streamvec/sync/message.h"

#include <cstring>

namespace streamvec {
namespace {

constexpr char kMagic = 'v';
constexpr uint8_t kLast = 1, kShares = 2, kStamp = 4, kConfirmed = 8;

void put_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool byte(uint8_t& value) {
    if (bytes_.empty()) return false;
    value = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return true;
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t next = 0;
      if (!byte(next)) return false;
      value |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return shift < 63 || next <= 1;
    }
    return false;
  }
  bool number(int64_t& value) {
    uint64_t stored = 0;
    if (!varint(stored)) return false;
    value = unzigzag(stored);
    return true;
  }
  bool bytes(size_t count, std::string_view& value) {
    if (count > bytes_.size()) return false;
    value = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return true;
  }
  size_t left() const { return bytes_.size(); }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

Status damaged(std::string_view what) {
  return error(Code::kInvalidArgument, "a message with ", what,
               "; the sender runs another version, or is no streamvec");
}

Status read_rows(Reader& reader, const MessageLimits& limits, Message& message) {
  uint64_t count = 0;
  if (!reader.varint(count)) return damaged("no number of rows");
  if (count > static_cast<uint64_t>(limits.rows_max))
    return error(Code::kResourceExhausted, "a message of ", count, " rows; at most ", limits.rows_max, " are taken");
  if (count > reader.left()) return damaged("fewer rows than it says");
  message.rows.reserve(count);
  uint64_t key = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t gap = 0;
    if (!reader.varint(gap)) return damaged("fewer rows than it says");
    if (gap >= limits.key_end || key + gap >= limits.key_end)
      return error(Code::kOutOfRange, "a message names row ", key + gap, " where there are ", limits.key_end);
    key += gap;
    message.rows.push_back(static_cast<RowKey>(key++));
  }
  return {};
}

Status read_clocks(Reader& reader, const MessageLimits& limits, Message& message) {
  uint64_t count = 0;
  if (!reader.varint(count)) return damaged("no number of clocks");
  if (count > static_cast<uint64_t>(limits.clocks_max))
    return error(Code::kResourceExhausted, "a message of ", count, " clocks; at most ", limits.clocks_max,
                 " are taken");
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t server = 0, worker = 0;
    WorkerClock next;
    if (!reader.varint(server) || server > UINT32_MAX || !reader.varint(worker) || worker > UINT32_MAX ||
        !reader.number(next.clock))
      return damaged("fewer clocks than it says");
    next.server = static_cast<NodeId>(server);
    next.worker = static_cast<NodeId>(worker);
    message.clocks.push_back(next);
  }
  return {};
}

void put_shares(const Message& message, std::string& out) {
  out.append(reinterpret_cast<const char*>(message.shares.data()), message.shares.size());
  put_varint(message.directions.size(), out);
  out.append(reinterpret_cast<const char*>(message.directions.data()), sizeof(float) * message.directions.size());
}

Status read_shares(Reader& reader, Message& message) {
  std::string_view bytes;
  if (!reader.bytes(2 * message.rows.size(), bytes)) return damaged("fewer shares than rows");
  message.shares.assign(bytes.begin(), bytes.end());
  uint64_t count = 0;
  if (!reader.varint(count) || count > reader.left() / sizeof(float) || !reader.bytes(sizeof(float) * count, bytes))
    return damaged("fewer directions than it says");
  message.directions.resize(count);
  if (count > 0) std::memcpy(message.directions.data(), bytes.data(), bytes.size());
  return {};
}

}  // namespace

int64_t clock_of(std::span<const WorkerClock> clocks, NodeId server, NodeId worker) {
  for (const WorkerClock& known : clocks)
    if (known.server == server && known.worker == worker) return known.clock;
  return 0;
}

std::string encode(const Message& message) {
  std::string out;
  out.reserve(64 + 3 * message.rows.size() + message.payload.size());
  out.push_back(kMagic);
  out.push_back(static_cast<char>(message.kind));
  out.push_back(static_cast<char>(message.codec));
  out.push_back(static_cast<char>((message.last ? kLast : 0) | (message.shares.empty() ? 0 : kShares) |
                                  (message.stamp > 0 ? kStamp : 0) | (message.confirmed ? kConfirmed : 0)));
  put_varint(message.epoch, out);
  if (message.stamp > 0) put_varint(message.stamp, out);
  for (const int64_t number : {message.clock, message.version}) put_varint(zigzag(number), out);
  put_varint(message.clocks.size(), out);
  for (const WorkerClock& known : message.clocks) {
    put_varint(known.server, out);
    put_varint(known.worker, out);
    put_varint(zigzag(known.clock), out);
  }
  put_varint(message.rows.size(), out);
  RowKey next = 0;
  for (const RowKey key : message.rows) {
    put_varint(key - next, out);
    next = key + 1;
  }
  if (!message.shares.empty()) put_shares(message, out);
  out += message.payload;
  return out;
}

Result<Message> decode_message(std::string_view bytes, const MessageLimits& limits) {
  Reader reader(bytes);
  Message message;
  uint8_t magic = 0, kind = 0, codec = 0, flags = 0;
  uint64_t epoch = 0;
  if (!reader.byte(magic) || magic != kMagic) return damaged("no streamvec header");
  if (!reader.byte(kind) || kind < 1 || kind > static_cast<uint8_t>(MessageKind::kTaken))
    return damaged("an unknown kind");
  if (!reader.byte(codec) || !reader.byte(flags) || flags > (kLast | kShares | kStamp | kConfirmed))
    return damaged("no codec");
  message.kind = static_cast<MessageKind>(kind);
  message.last = (flags & kLast) != 0;
  message.confirmed = (flags & kConfirmed) != 0;
  STREAMVEC_ASSIGN_OR_RETURN(message.codec, codec_of(codec));
  if (!reader.varint(epoch) || epoch > UINT32_MAX) return damaged("no epoch");
  message.epoch = static_cast<uint32_t>(epoch);
  if ((flags & kStamp) != 0 && (!reader.varint(message.stamp) || message.stamp == 0)) return damaged("no stamp");
  if (!reader.number(message.clock) || !reader.number(message.version)) return damaged("no clocks");
  STREAMVEC_RETURN_IF_ERROR(read_clocks(reader, limits, message));
  STREAMVEC_RETURN_IF_ERROR(read_rows(reader, limits, message));
  if ((flags & kShares) != 0) STREAMVEC_RETURN_IF_ERROR(read_shares(reader, message));
  message.payload = reader.rest();
  return message;
}

}  // namespace streamvec
