// One record of a stream, as a Document: a broker's message, a line of a file, an event's data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/source/location.h"
#include "streamvec/source/source.h"

namespace streamvec {

// How long a record may be. Longer ones are bad.
constexpr size_t kRecordBytesMax = size_t{16} << 20;

// What a record is and which of its parts are wanted, from the settings of a source's name:
//   format=text   the record is the text (the default)
//   format=json   parts are named by JSON pointers (RFC 6901): text=/title,/body
//   format=tsv    parts are columns, counted from 1: text=3,4
//   text=A,B,...  the text: strings, numbers, lists of them; several are put below each other. Default /text, column 1.
//   id=A,...      the record's name; several are joined by "/". Default none.
//   time=A        when it was written, as parse_time() reads it; a time that cannot be read is none. Default none.
//   delete=A      the record withdraws what `id` names when A is there and is not false, 0, "" or null
//   delete=A:V    likewise when A is V ("delete=/commit/operation:delete")
// Without format=, a text=, id=, time= or delete= that begins with "/" makes it json, one with a digit tsv.
// JSON is checked as a whole: a record cut short or with a stray byte anywhere is bad. Not thread-safe; moves cheaply.
class RecordFormat {
 public:
  enum class Kind { kText, kJson, kTsv };

  RecordFormat();  // plain text
  RecordFormat(RecordFormat&&) noexcept;
  RecordFormat& operator=(RecordFormat&&) noexcept;
  ~RecordFormat();

  // kInvalidArgument names the setting that is wrong. `otherwise` is the kind when no setting tells.
  static Result<RecordFormat> from(const Location& location, Kind otherwise = Kind::kText);
  // The settings above, for messages and checks.
  static const std::vector<std::string_view>& keys();
  // Location::check_keys() for a source that has `others` beside the settings above.
  static Status check_keys(const Location& location, std::initializer_list<std::string_view> others);

  Kind kind() const { return kind_; }
  // Sets text, id, time_s and deleted of `out`; the cursor is the caller's. Bytes that are no UTF-8 become U+FFFD in
  // JSON and stay as they are elsewhere. Callers count errors and go on:
  // kInvalidArgument: it is no record of this kind. kNotFound: it is one, but has none of the text's parts (or, to be
  // deleted, no id): it is about something else. kResourceExhausted: longer than kRecordBytesMax.
  Status read(std::string_view record, Document& out);

 private:
  struct Json;  // keeps the parser out of this header
  struct Part {
    std::string pointer;
    size_t column = 0;  // from 0
  };
  using Parts = std::vector<Part>;

  Status set_part(const Location& location, const std::string& key, std::string_view value, Parts& parts) const;
  Status read_json(std::string_view record, Document& out);
  Status read_tsv(std::string_view record, Document& out);
  // Fills `out` from parts that `part(const Part&, std::string&)` appends; it returns false for one that is not there.
  template <typename PartReader>
  Status assemble(PartReader part, Document& out);

  Kind kind_ = Kind::kText;
  Parts text_, id_, time_, deleted_;
  std::optional<std::string> deleted_value_;
  std::unique_ptr<Json> json_;
  std::vector<std::string_view> columns_;
  std::string value_;
};

}  // namespace streamvec
