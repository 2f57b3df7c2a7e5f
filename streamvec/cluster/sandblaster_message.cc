#include "streamvec/cluster/sandblaster_message.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace streamvec {
namespace {

constexpr char kSandblasterMagic = 'b';

template <typename Value>
void put(const Value& value, std::string& out) {
  static_assert(std::is_trivially_copyable_v<Value>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Values>
void put_all(const Values& values, std::string& out) {
  put(static_cast<uint64_t>(values.size()), out);
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
}

template <typename Value>
bool get(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

template <typename Values>
bool get_all(std::string_view& bytes, Values& values) {
  uint64_t count = 0;
  if (!get(bytes, count) || count > bytes.size() / sizeof values[0]) return false;
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof values[0]);
  bytes.remove_prefix(count * sizeof values[0]);
  return true;
}

// Padding would carry whatever was in memory.
bool get_ops(std::string_view& bytes, std::vector<VectorOp>& ops) {
  constexpr size_t kOpBytes = 3 + sizeof(double);
  uint64_t count = 0;
  if (!get(bytes, count) || count > bytes.size() / kOpBytes) return false;
  for (VectorOp op; count > 0; --count) {
    if (!get(bytes, op.kind) || !get(bytes, op.a) || !get(bytes, op.b) || !get(bytes, op.factor)) return false;
    if (op.kind < VectorOp::Kind::kCopy || op.kind > VectorOp::Kind::kDotDivided) return false;
    ops.push_back(op);
  }
  return true;
}

void put_ops(const std::vector<VectorOp>& ops, std::string& out) {
  put(static_cast<uint64_t>(ops.size()), out);
  for (const VectorOp& op : ops) {
    put(op.kind, out);
    put(op.a, out);
    put(op.b, out);
    put(op.factor, out);
  }
}

}  // namespace

std::string encode(const SandblasterMessage& message) {
  std::string out(1, kSandblasterMagic);
  out.reserve(80 + 11 * message.ops.size() + 8 * message.doubles.size() + 4 * message.rows.size() +
              4 * message.values.size() + message.text.size());
  put(message.kind, out);
  put(message.epoch, out);
  put(message.number, out);
  put(message.portion, out);
  put(message.vector, out);
  put_ops(message.ops, out);
  put_all(message.doubles, out);
  put_all(message.rows, out);
  put_all(message.values, out);
  put_all(message.text, out);
  return out;
}

size_t rows_of_message(int64_t dim) {
  constexpr int64_t kBytes = int64_t{8} << 20;
  return static_cast<size_t>(std::max<int64_t>(1, kBytes / (static_cast<int64_t>(sizeof(float)) * dim)));
}

Result<SandblasterMessage> decode_sandblaster(std::string_view bytes) {
  SandblasterMessage message;
  char magic = 0;
  const bool whole = get(bytes, magic) && magic == kSandblasterMagic && get(bytes, message.kind) &&
                     get(bytes, message.epoch) && get(bytes, message.number) && get(bytes, message.portion) &&
                     get(bytes, message.vector) && get_ops(bytes, message.ops) && get_all(bytes, message.doubles) &&
                     get_all(bytes, message.rows) && get_all(bytes, message.values) && get_all(bytes, message.text);
  if (!whole || !bytes.empty() || message.kind < SandblasterKind::kHello || message.kind > SandblasterKind::kGoOn)
    return error(Code::kInvalidArgument,
                 "a message that nobody can read; the sender runs another version, or has another --sync or --shard");
  return message;
}

}  // namespace streamvec
