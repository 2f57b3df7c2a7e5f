#include "streamvec/train/checkpoint_manifest.h"

#include <charconv>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "streamvec checkpoint";
constexpr int64_t kVersion = 1;
constexpr std::string_view kSumBefore = ",\n  \"xxh3\": \"";
constexpr std::string_view kSumAfter = "\"\n}\n";
constexpr size_t kSumDigits = 16;

ordered_json encode_sum(int64_t bytes, uint64_t checksum) {
  return {{"bytes", bytes}, {"xxh3", Checksum::to_text(checksum)}};
}

ordered_json encode_file(const FileSum& file) {
  ordered_json entry = encode_sum(file.bytes, file.checksum);
  for (const FilePart& part : file.parts) {
    ordered_json sum = {{"name", part.name}};
    sum.update(encode_sum(part.bytes, part.checksum));
    entry["parts"].push_back(std::move(sum));
  }
  return entry;
}

bool decode_sum(const json& entry, int64_t& bytes, uint64_t& checksum) {
  if (!entry.is_object() || !entry.contains("bytes") || !entry.contains("xxh3")) return false;
  if (!entry["bytes"].is_number_unsigned() || !entry["xxh3"].is_string()) return false;
  const std::string& digits = entry["xxh3"].get_ref<const std::string&>();
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), checksum, 16);
  bytes = entry["bytes"].get<int64_t>();
  return digits.size() == kSumDigits && parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() &&
         bytes >= 0;
}

bool decode_file(const json& entry, FileSum& file) {
  if (!decode_sum(entry, file.bytes, file.checksum)) return false;
  if (!entry.contains("parts")) return true;
  if (!entry["parts"].is_array()) return false;
  int64_t offset = 0;
  for (const json& item : entry["parts"]) {
    FilePart part;
    if (!decode_sum(item, part.bytes, part.checksum) || !item.contains("name") || !item["name"].is_string())
      return false;
    part.name = item["name"];
    part.offset = offset;
    offset += part.bytes;
    file.parts.push_back(std::move(part));
  }
  return true;
}

bool decode_members(json& text, CheckpointManifest& manifest) {
  for (const char* name : {"step", "model", "files", "state"})
    if (!text.contains(name)) return false;
  if (!text["step"].is_number_unsigned() || !text["model"].is_string() || !text["files"].is_object()) return false;
  manifest.step = text["step"];
  manifest.model = text["model"];
  manifest.state = std::move(text["state"]);  // a copy of something deeply nested would recurse
  for (const auto& [name, entry] : text["files"].items())
    if (!decode_file(entry, manifest.files[name])) return false;
  return true;
}

// The sum covers everything but itself and the bracket after it, which are fixed.
Status check_own_sum(std::string_view text, const std::string& path) {
  const size_t tail = kSumDigits + kSumAfter.size();
  const auto cut = [&] {
    return error(Code::kDataLoss, path, " ends at byte ", text.size(), " without its sum; it was cut short or changed");
  };
  if (text.size() < kSumBefore.size() + tail || !text.ends_with(kSumAfter)) return cut();
  const std::string_view body = text.substr(0, text.size() - tail);
  if (!body.ends_with(kSumBefore)) return cut();
  if (text.substr(body.size(), kSumDigits) != Checksum::of(body))
    return error(Code::kDataLoss, path, ": bytes 0 to ", body.size(), " do not match their sum; the file was damaged");
  return {};
}

}  // namespace

std::string CheckpointManifest::encode() const {
  ordered_json text = {{"format", kFormat}, {"version", kVersion}, {"step", step}, {"model", model}};
  text["files"] = ordered_json::object();
  for (const auto& [name, file] : files) text["files"][name] = encode_file(file);
  text["state"] = ordered_json(state);
  std::string body = json_text(text, 2);
  body.resize(body.size() - 2);  // the closing "\n}"
  body += kSumBefore;
  const std::string sum = Checksum::of(body);
  return body + sum + std::string(kSumAfter);
}

Result<CheckpointManifest> CheckpointManifest::decode(std::string_view text, const std::string& path) {
  STREAMVEC_RETURN_IF_ERROR(check_own_sum(text, path));
  json parsed = parse_json(text);
  if (!parsed.is_object() || !parsed.contains("format") || parsed["format"] != kFormat || !parsed.contains("version"))
    return error(Code::kDataLoss, path, ": byte 0: this is not the state of a checkpoint");
  if (parsed["version"] != kVersion)
    return error(Code::kFailedPrecondition, path, " has version ", json_text(parsed["version"]),
                 ", this program knows ", kVersion, "; use the program that wrote it or a later one");
  CheckpointManifest manifest;
  if (!decode_members(parsed, manifest))
    return error(Code::kDataLoss, path, ": byte 0: a member is missing or of the wrong kind");
  return manifest;
}

}  // namespace streamvec
