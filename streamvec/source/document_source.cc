#include "streamvec/source/document_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "streamvec/core/json.h"
#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

struct Place {
  int64_t offset = 0;
  std::string sum;
};

Result<Place> place_of(const std::string& cursor) {
  const nlohmann::json at = parse_json(cursor);
  if (!at.is_object() || !at.value("offset", nlohmann::json()).is_number_unsigned() ||
      !at.value("sum", nlohmann::json()).is_string())
    return error(Code::kInvalidArgument, "not a cursor of documents: ", cursor.substr(0, 200));
  return Place{at["offset"], at["sum"]};
}

}  // namespace

DocumentSource::DocumentSource(std::unique_ptr<DocumentReader> reader, Options options)
    : reader_(std::move(reader)), options_(std::move(options)) {}

std::vector<std::string> DocumentSource::notes() const {
  if (ended_ && !read_any_) return {options_.name + " have no text"};
  return {};
}

Result<int64_t> DocumentSource::read(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t count,
                             options_.apart ? read_apart(deadline, out) : read_pieces(count_max, deadline, out));
  if (count == 0 && !read_any_) return error(Code::kInvalidArgument, options_.name, " have no text; give some");
  return count;
}

Result<int64_t> DocumentSource::read_apart(Deadline deadline, std::vector<Document>& out) {
  documents_.clear();
  STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, reader_->read(deadline, documents_));
  ended_ = count == 0;
  for (Document& document : documents_) {
    read_any_ = true;
    offset_ += static_cast<int64_t>(document.text.size());
    sum_.update(document.text);
    document.cursor = cursor();
    out.push_back(std::move(document));
  }
  return count;
}

Result<int64_t> DocumentSource::read_pieces(int64_t count_max, Deadline deadline, std::vector<Document>& out) {
  int64_t count = 0;
  do {
    const Status status = fill(deadline);
    const size_t left = text_.size() - begin_;
    // What is read only once may come slowly: then whole documents do not wait until a piece is full.
    const bool slow = status.code() == Code::kDeadlineExceeded && !options_.replayable && left > 0;
    if (!status.ok() && !slow) return status;
    if (left == 0) break;
    const std::string_view text = std::string_view(text_).substr(begin_);
    const size_t size = left > kPieceBytes ? piece_bytes(text) : left;
    std::string piece(text.substr(0, size));
    take(size);
    out.push_back({std::move(piece), cursor()});
  } while (++count < count_max && text_.size() - begin_ > kPieceBytes);
  return count;
}

// Reads until there is more than a piece, or no more to come.
Status DocumentSource::fill(Deadline deadline) {
  while (!ended_ && text_.size() - begin_ <= kPieceBytes) {
    text_.erase(0, std::exchange(begin_, 0));
    documents_.clear();
    STREAMVEC_ASSIGN_OR_RETURN(const int64_t count, reader_->read(deadline, documents_));
    ended_ = count == 0;
    for (const Document& document : documents_) {
      if (document.deleted || document.text.empty()) continue;
      read_any_ = true;
      text_ += document.text;
      text_ += '\n';
    }
  }
  return {};
}

Status DocumentSource::seek(const std::string& cursor) {
  if (cursor.empty()) return offset_ == 0 && text_.empty() && !ended_ ? Status() : begin_anew();
  if (!options_.replayable) return begin_anew();
  STREAMVEC_ASSIGN_OR_RETURN(const Place place, place_of(cursor));
  STREAMVEC_RETURN_IF_ERROR(begin_anew());
  STREAMVEC_RETURN_IF_ERROR(skip_to(place.offset));
  if (offset_ == place.offset && sum_.text() == place.sum) return {};
  STREAMVEC_RETURN_IF_ERROR(begin_anew());
  return error(Code::kFailedPrecondition, options_.name, " are no longer what they were");
}

Status DocumentSource::skip_to(int64_t offset) {
  while (offset_ < offset) {
    STREAMVEC_RETURN_IF_ERROR(fill(Deadline::never()));
    if (text_.size() == begin_) return {};
    take(static_cast<size_t>(std::min<int64_t>(offset - offset_, static_cast<int64_t>(text_.size() - begin_))));
  }
  return {};
}

Status DocumentSource::begin_anew() {
  if (!options_.replayable) return error(Code::kFailedPrecondition, options_.name, " can be read only once");
  text_.clear();
  begin_ = 0;
  ended_ = false;
  offset_ = 0;
  sum_.reset();
  return reader_->rewind();
}

void DocumentSource::take(size_t count) {
  sum_.update(std::string_view(text_).substr(begin_, count));
  begin_ += count;
  offset_ += static_cast<int64_t>(count);
}

std::string DocumentSource::cursor() const {
  return json_text(nlohmann::json{{"offset", offset_}, {"sum", sum_.text()}});
}

}  // namespace streamvec
