#include "streamvec/source/record.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "streamvec/source/time_text.h"
#include "streamvec/text/charset.h"

namespace streamvec {
namespace {

namespace dom = simdjson::dom;

// simdjson takes 14 bytes of memory for each byte of the longest record so far: given back after a rare long one.
constexpr size_t kLongRecordBytes = size_t{1} << 20;

void append_number(double value, std::string& out) {
  char digits[32];
  const auto [end, failure] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

// Strings, numbers and lists of them, one below the other; false when there is none.
bool append_text(dom::element value, std::string& out) {
  switch (value.type()) {
    case dom::element_type::STRING:
      out += std::string_view(value.get_string().value_unsafe());
      return true;
    case dom::element_type::INT64:
      out += std::to_string(int64_t(value.get_int64().value_unsafe()));
      return true;
    case dom::element_type::UINT64:
      out += std::to_string(uint64_t(value.get_uint64().value_unsafe()));
      return true;
    case dom::element_type::DOUBLE:
      append_number(value.get_double().value_unsafe(), out);
      return true;
    case dom::element_type::ARRAY: {
      bool any = false;
      for (dom::element member : dom::array(value.get_array().value_unsafe())) {
        const size_t size_before = out.size();
        if (any) out += '\n';
        if (append_text(member, out))
          any = true;
        else
          out.resize(size_before);
      }
      return any;
    }
    case dom::element_type::BOOL:
      if (bool(value.get_bool().value_unsafe())) out += "true";
      return bool(value.get_bool().value_unsafe());
    case dom::element_type::OBJECT:
    case dom::element_type::NULL_VALUE:
      break;
  }
  return false;
}

void split(std::string_view text, char mark, std::vector<std::string_view>& parts) {
  parts.clear();
  for (;;) {
    const size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::optional<RecordFormat::Kind> kind_by_parts(const Location& location) {
  for (const char* key : {"text", "id", "time", "delete"}) {
    const std::string value = location.text(key);
    if (value.starts_with('/')) return RecordFormat::Kind::kJson;
    if (!value.empty() && std::isdigit(static_cast<unsigned char>(value[0])) != 0) return RecordFormat::Kind::kTsv;
  }
  return std::nullopt;
}

Result<RecordFormat::Kind> kind_of(const Location& location, RecordFormat::Kind otherwise) {
  const std::string format = location.text("format");
  if (format == "text") return RecordFormat::Kind::kText;
  if (format == "json") return RecordFormat::Kind::kJson;
  if (format == "tsv") return RecordFormat::Kind::kTsv;
  if (!format.empty())
    return error(Code::kInvalidArgument, location.name, ": format=", format, " is not known; it is text, json or tsv");
  if (otherwise != RecordFormat::Kind::kText) return otherwise;
  return kind_by_parts(location).value_or(otherwise);
}

// RFC 6901: "~" comes only as "~0" and "~1".
bool is_pointer(std::string_view text) {
  if (!text.starts_with('/')) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '~' && (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1'))) return false;
  return true;
}

constexpr size_t kColumnsMax = 10'000;

bool is_column(std::string_view text, size_t& column) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), column);
  return failure == std::errc() && end == text.data() + text.size() && column >= 1 && column <= kColumnsMax;
}

}  // namespace

struct RecordFormat::Json {
  dom::parser parser{kRecordBytesMax};
  std::string padded;  // simdjson reads past the end of a record
  std::string repaired;

  simdjson::error_code parse(std::string_view record, dom::element& root) {
    if (padded.size() < record.size() + simdjson::SIMDJSON_PADDING)
      padded.resize(std::max<size_t>(2 * record.size(), 4096) + simdjson::SIMDJSON_PADDING);
    record.copy(padded.data(), record.size());
    std::memset(padded.data() + record.size(), ' ', simdjson::SIMDJSON_PADDING);
    return parser.parse(padded.data(), record.size(), false).get(root);
  }
};

RecordFormat::RecordFormat() = default;
RecordFormat::RecordFormat(RecordFormat&&) noexcept = default;
RecordFormat& RecordFormat::operator=(RecordFormat&&) noexcept = default;
RecordFormat::~RecordFormat() = default;

const std::vector<std::string_view>& RecordFormat::keys() {
  static const std::vector<std::string_view> kKeys = {"format", "text", "id", "time", "delete"};
  return kKeys;
}

Status RecordFormat::check_keys(const Location& location, std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> known(others);
  known.insert(known.end(), keys().begin(), keys().end());
  for (const auto& [key, value] : location.query) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
    return error(Code::kInvalidArgument, location.name, ": \"", key, "\" is not known here; after ? come ", list);
  }
  return {};
}

Status RecordFormat::set_part(const Location& location, const std::string& key, std::string_view value,
                              Parts& parts) const {
  const auto bad = [&](std::string_view part, std::string_view wanted) {
    return error(Code::kInvalidArgument, location.name, ": \"", part, "\" in ", key, "= is not ", wanted);
  };
  std::vector<std::string_view> names;
  split(value, ',', names);
  for (const std::string_view name : names) {
    Part part;
    if (kind_ == Kind::kJson && !is_pointer(name)) return bad(name, "a JSON pointer such as /title or /user/name");
    if (kind_ == Kind::kTsv && !is_column(name, part.column)) return bad(name, "a column counted from 1");
    part.pointer = name;
    part.column -= kind_ == Kind::kTsv ? 1 : 0;
    parts.push_back(std::move(part));
  }
  return {};
}

Result<RecordFormat> RecordFormat::from(const Location& location, Kind otherwise) {
  RecordFormat format;
  STREAMVEC_ASSIGN_OR_RETURN(format.kind_, kind_of(location, otherwise));
  if (format.kind_ == Kind::kText) {
    for (const char* key : {"text", "id", "time", "delete"})
      if (location.query.contains(key))
        return error(Code::kInvalidArgument, location.name, ": ", key,
                     "= chooses a part of a record, but a record here is plain text; add format=json or format=tsv");
    return format;
  }
  STREAMVEC_RETURN_IF_ERROR(format.set_part(
      location, "text", location.text("text", format.kind_ == Kind::kJson ? "/text" : "1"), format.text_));
  if (const std::string id = location.text("id"); !id.empty())
    STREAMVEC_RETURN_IF_ERROR(format.set_part(location, "id", id, format.id_));
  if (const std::string time = location.text("time"); !time.empty())
    STREAMVEC_RETURN_IF_ERROR(format.set_part(location, "time", time, format.time_));
  if (std::string deleted = location.text("delete"); !deleted.empty()) {
    if (const size_t colon = deleted.find(':'); colon != std::string::npos) {
      format.deleted_value_ = deleted.substr(colon + 1);
      deleted.resize(colon);
    }
    STREAMVEC_RETURN_IF_ERROR(format.set_part(location, "delete", deleted, format.deleted_));
    if (format.id_.empty())
      return error(Code::kInvalidArgument, location.name, ": delete= needs id=, the name of what is withdrawn");
  }
  return format;
}

Status RecordFormat::read(std::string_view record, Document& out) {
  out.text.clear();
  out.id.clear();
  out.time_s = 0;
  out.deleted = false;
  if (record.size() > kRecordBytesMax)
    return error(Code::kResourceExhausted, "a record of ", record.size(), " bytes; the limit is ", kRecordBytesMax);
  if (kind_ == Kind::kJson) return read_json(record, out);
  if (kind_ == Kind::kTsv) return read_tsv(record, out);
  out.text = record;
  return {};
}

template <typename PartReader>
Status RecordFormat::assemble(PartReader part, Document& out) {
  for (const Part& wanted : id_) {
    if (&wanted != &id_.front()) out.id += '/';
    if (part(wanted, out.id)) continue;
    out.id.clear();  // part of a name is none
    break;
  }
  for (const Part& wanted : time_) {
    value_.clear();
    if (out.time_s != 0 || !part(wanted, value_)) continue;
    if (const Result<int64_t> time = parse_time(value_); time.ok()) out.time_s = *time;
  }
  for (const Part& wanted : deleted_) {
    value_.clear();
    if (!part(wanted, value_)) continue;
    out.deleted |= deleted_value_ ? value_ == *deleted_value_ : !value_.empty() && value_ != "0" && value_ != "false";
  }
  if (out.deleted) return out.id.empty() ? error(Code::kNotFound, "a withdrawn record without an id") : Status();
  bool any = false;
  for (const Part& wanted : text_) {
    const size_t size_before = out.text.size();
    if (any) out.text += '\n';
    if (part(wanted, out.text))
      any = true;
    else
      out.text.resize(size_before);
  }
  return any ? Status() : error(Code::kNotFound, "a record without text: ", text_.front().pointer, " is not there");
}

Status RecordFormat::read_json(std::string_view record, Document& out) {
  if (json_ == nullptr) json_ = std::make_unique<Json>();
  dom::element root;
  simdjson::error_code failure = json_->parse(record, root);
  if (failure == simdjson::UTF8_ERROR) failure = json_->parse(to_utf8(record, "utf-8", false, json_->repaired), root);
  Status status;
  if (failure == simdjson::MEMALLOC)
    status = error(Code::kResourceExhausted, "no memory for a record of ", record.size(), " bytes");
  else if (failure != simdjson::SUCCESS)
    status = error(Code::kInvalidArgument, "not JSON: ", simdjson::error_message(failure));
  else
    status = assemble(
        [&](const Part& wanted, std::string& text) {
          dom::element value;
          return root.at_pointer(wanted.pointer).get(value) == simdjson::SUCCESS && append_text(value, text);
        },
        out);
  if (record.size() > kLongRecordBytes) json_.reset();
  return status;
}

Status RecordFormat::read_tsv(std::string_view record, Document& out) {
  split(record, '\t', columns_);
  for (const Part& wanted : text_)
    if (wanted.column >= columns_.size())
      return error(Code::kInvalidArgument, "a line with ", columns_.size(), " columns; text= wants column ",
                   wanted.column + 1);
  return assemble(
      [&](const Part& wanted, std::string& text) {
        if (wanted.column >= columns_.size()) return false;
        text += columns_[wanted.column];
        return true;
      },
      out);
}

}  // namespace streamvec
