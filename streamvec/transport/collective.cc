#include "streamvec/transport/collective.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "streamvec/core/clock.h"

namespace streamvec {
namespace {

struct Header {
  uint64_t sequence = 0;  // of the frames from one rank to the next: a gap is a loss
  uint32_t kind = 0, group = 0;
  uint64_t size = 0;
};
constexpr size_t kHeader = sizeof(Header);
static_assert(kHeader == 24);
constexpr std::chrono::milliseconds kInterruptLook{20};
constexpr size_t kAtOnce = size_t{16} << 20;  // memory for bytes that are announced; for more as they come

void set_header(std::string& frame, const Header& header) {
  std::memcpy(frame.data(), &header, kHeader);
}

Header header_of(const std::string& frame) {
  Header header;
  std::memcpy(&header, frame.data(), kHeader);
  return header;
}

// Part `part` of `parts` that differ in size by one at most.
std::span<float> segment(std::span<float> values, int part, int parts) {
  const size_t begin = values.size() * static_cast<size_t>(part) / static_cast<size_t>(parts);
  const size_t end = values.size() * static_cast<size_t>(part + 1) / static_cast<size_t>(parts);
  return values.subspan(begin, end - begin);
}

std::span<float> part_of(std::span<float> values, const RingCollective::Parts& parts, int part) {
  const auto i = static_cast<size_t>(part);
  return values.subspan(parts.begins[i], parts.begins[i + 1] - parts.begins[i]);
}

size_t place_in(std::span<const float> values, std::span<const float> part) {
  return static_cast<size_t>(part.data() - values.data());
}

}  // namespace

RingCollective::RingCollective(Transport& transport, std::vector<NodeId> ring, Options options)
    : transport_(transport), options_(std::move(options)) {
  form(std::move(ring), 0);
}

void RingCollective::form(std::vector<NodeId> ring, uint32_t number) {
  ring_ = std::move(ring);
  number_ = number;
  const auto self = std::find(ring_.begin(), ring_.end(), transport_.self());
  STREAMVEC_CHECK(self != ring_.end());
  rank_ = static_cast<int>(self - ring_.begin());
  sent_ = received_ = 0;
  silent_s_ = 0;
  broken_ = {};
  stash_.clear();
  for (auto& [from, frame] : std::exchange(early_, {}))
    if (is_ours(from, frame)) stash_.push_back(std::move(frame));
}

Status RingCollective::all_reduce_mean(std::span<float> values, Deadline deadline) {
  const std::unique_ptr<ValueForm> form = options_.in_bf16 ? bf16_form() : whole_form();
  return reduce(values, nullptr, {*form, *form}, deadline);
}

Status RingCollective::all_reduce_mean_in_four_bits(std::span<float> values, size_t whole, std::span<float> left_out,
                                                    Deadline deadline) {
  STREAMVEC_CHECK(whole <= values.size() && left_out.size() == values.size());
  const std::unique_ptr<ValueForm> form = fourbit_form(values.size() - whole, left_out);
  return reduce(values, nullptr, {*form, *form}, deadline);
}

Status RingCollective::all_reduce_made(std::span<float> values, const Parts& parts, Deadline deadline) {
  const std::unique_ptr<ValueForm> form = options_.in_bf16 ? bf16_form() : whole_form();
  return reduce(values, &parts, {*form, *form}, deadline);
}

Status RingCollective::all_reduce_made_in_few_bits(std::span<float> values, size_t whole, std::span<float> left_out,
                                                   const Parts& parts, Deadline deadline) {
  STREAMVEC_CHECK(whole <= values.size() && left_out.size() == values.size());
  const std::unique_ptr<ValueForm> sums = eightbit_form(values.size() - whole, left_out);
  const std::unique_ptr<ValueForm> made = fourbit_form(values.size() - whole, left_out);
  return reduce(values, &parts, {*sums, *made}, deadline);
}

template <typename Use>
Status RingCollective::for_each_chunk(std::span<float> part, const Use& use) const {
  const size_t most =
      static_cast<size_t>(std::max<int64_t>(1, options_.chunk_bytes / static_cast<int64_t>(sizeof(float))));
  for (size_t at = 0; at < part.size(); at += most)
    STREAMVEC_RETURN_IF_ERROR(use(part.subspan(at, std::min(most, part.size() - at))));
  return {};
}

template <typename Value, typename Use>
void RingCollective::for_each_piece(std::span<const float> values, std::span<Value> chunk, const ValueForm& form,
                                    char* bytes, const Use& use) const {
  const size_t at = place_in(values, chunk), units = (chunk.size() + ValueForm::kUnit - 1) / ValueForm::kUnit;
  if (options_.team == nullptr || units < 2) return use(at, chunk, bytes);
  const auto members = static_cast<size_t>(options_.team->size());
  const auto begin_of = [&](size_t member) {
    return std::min(chunk.size(), units * member / members * ValueForm::kUnit);
  };
  options_.team->run([&](int32_t member) {
    const size_t begin = begin_of(static_cast<size_t>(member)), end = begin_of(static_cast<size_t>(member) + 1);
    if (begin < end) use(at + begin, chunk.subspan(begin, end - begin), bytes + form.bytes(at, begin));
  });
}

// Every part goes round twice less a step: first it is summed up, then the mean is handed out. Who has received a
// chunk sends it on at once, unless the part is its own to make something of.
Status RingCollective::reduce(std::span<float> values, const Parts* parts, Forms forms, Deadline deadline) {
  STREAMVEC_RETURN_IF_ERROR(broken_);
  const auto count = static_cast<size_t>(ranks());
  STREAMVEC_CHECK(parts == nullptr || (parts->begins.size() == count + 1 && parts->begins.back() == values.size()));
  if (count == 1) {
    if (parts != nullptr) parts->make(0, values);
    return {};
  }
  const auto part_at = [&](int64_t rank) {
    return parts == nullptr ? segment(values, place(rank), ranks()) : part_of(values, *parts, place(rank));
  };
  STREAMVEC_RETURN_IF_ERROR(keep(send_part(values, part_at(rank_), forms.sums, deadline)));
  for (int64_t step = 0; step < 2 * (ranks() - 1); ++step) {
    const std::span<float> part = part_at(rank_ - 1 - step);
    const bool summed_up = step == ranks() - 2;
    STREAMVEC_RETURN_IF_ERROR(keep(summed_up && parts != nullptr ? make_part(values, part, *parts, forms, deadline)
                                                                 : reduce_part(step, values, part, forms, deadline)));
  }
  return {};
}

Status RingCollective::send_part(std::span<const float> values, std::span<float> part, ValueForm& form,
                                 Deadline deadline) {
  std::string bytes;
  return for_each_chunk(part,
                        [&](std::span<float> chunk) { return send_values(values, chunk, form, bytes, deadline); });
}

// `bytes`: what was sent.
Status RingCollective::send_values(std::span<const float> values, std::span<const float> chunk, ValueForm& form,
                                   std::string& bytes, Deadline deadline) {
  const size_t begin = place_in(values, chunk);
  bytes.resize(form.bytes(begin, chunk.size()));
  for_each_piece(values, chunk, form, bytes.data(),
                 [&](size_t at, std::span<const float> piece, char* to) { form.encode(at, piece, to); });
  return send_chunk(Kind::kReduce, std::ssize(values), bytes, deadline);
}

Status RingCollective::receive_values(std::span<const float> values, std::span<const float> chunk,
                                      const ValueForm& form, std::string& frame, Deadline deadline) {
  int64_t their_size = 0;
  STREAMVEC_RETURN_IF_ERROR(receive_chunk(Kind::kReduce, frame, their_size, deadline));
  if (their_size == std::ssize(values) && frame.size() == kHeader + form.bytes(place_in(values, chunk), chunk.size()))
    return {};
  return error(Code::kInvalidArgument, "node ", previous(), " brings ", their_size, " values, this one ", values.size(),
               ", or in another form");
}

Status RingCollective::reduce_part(int64_t step, std::span<float> values, std::span<float> part, Forms forms,
                                   Deadline deadline) {
  ValueForm& form = step > ranks() - 2 ? forms.outcome : forms.sums;
  return for_each_chunk(part,
                        [&](std::span<float> chunk) { return reduce_chunk(step, values, chunk, form, deadline); });
}

Status RingCollective::reduce_chunk(int64_t step, std::span<float> values, std::span<float> chunk, ValueForm& form,
                                    Deadline deadline) {
  const int64_t summed = ranks() - 2, last = 2 * ranks() - 3;
  std::string frame;
  STREAMVEC_RETURN_IF_ERROR(receive_values(values, chunk, form, frame, deadline));
  char* bytes = frame.data() + kHeader;
  const float divisor = step == summed ? static_cast<float>(ranks()) : 1;
  if (step <= summed)
    for_each_piece(values, chunk, form, bytes,
                   [&](size_t at, std::span<const float> piece, char* to) { form.add(at, piece, divisor, to); });
  if (step < summed) return pass_on(std::move(frame), deadline);
  if (step < last) STREAMVEC_RETURN_IF_ERROR(pass_on(frame, deadline));  // the next rank waits for it
  // As all have it, rounded.
  for_each_piece(values, chunk, form, bytes,
                 [&](size_t at, std::span<float> piece, char* from) { form.decode(at, from, piece); });
  return {};
}

// The sums of the others and this rank's own, whole; then what is made of their mean, as all get it.
Status RingCollective::make_part(std::span<float> values, std::span<float> part, const Parts& parts, Forms forms,
                                 Deadline deadline) {
  std::string bytes;
  std::vector<float> came;
  const float share = 1 / static_cast<float>(ranks());
  const auto find_mean = [&](std::span<float> chunk) -> Status {
    STREAMVEC_RETURN_IF_ERROR(receive_values(values, chunk, forms.sums, bytes, deadline));
    came.resize(chunk.size());
    for_each_piece(
        values, chunk, forms.sums, bytes.data() + kHeader, [&](size_t at, std::span<float> piece, char* from) {
          const auto sums = std::span(came).subspan(static_cast<size_t>(piece.data() - chunk.data()), piece.size());
          forms.sums.decode(at, from, sums);
          for (size_t i = 0; i < piece.size(); ++i) piece[i] = share * (sums[i] + piece[i]);
        });
    return {};
  };
  STREAMVEC_RETURN_IF_ERROR(for_each_chunk(part, find_mean));
  parts.make(static_cast<size_t>(place(rank_ + 1)), part);
  return for_each_chunk(part, [&](std::span<float> chunk) -> Status {
    STREAMVEC_RETURN_IF_ERROR(send_values(values, chunk, forms.outcome, bytes, deadline));
    for_each_piece(values, chunk, forms.outcome, bytes.data(),
                   [&](size_t at, std::span<float> piece, char* from) { forms.outcome.decode(at, from, piece); });
    return {};
  });
}

Status RingCollective::all_gather(std::string_view mine, std::vector<std::string>& all, Deadline deadline) {
  STREAMVEC_RETURN_IF_ERROR(broken_);
  all.assign(ring_.size(), {});
  all[static_cast<size_t>(rank_)] = mine;
  if (ranks() == 1) return {};
  STREAMVEC_RETURN_IF_ERROR(keep(send_bytes(mine, deadline)));
  for (int back = 1; back < ranks(); ++back) {
    std::string& theirs = all[static_cast<size_t>(place(rank_ - back))];
    STREAMVEC_RETURN_IF_ERROR(keep(receive_bytes(theirs, back < ranks() - 1, deadline)));
  }
  return {};
}

Status RingCollective::broadcast(std::string& bytes, int root, Deadline deadline) {
  STREAMVEC_CHECK(0 <= root && root < ranks());
  STREAMVEC_RETURN_IF_ERROR(broken_);
  if (ranks() == 1) return {};
  if (rank_ == root) return keep(send_bytes(bytes, deadline));
  return keep(receive_bytes(bytes, place(rank_ + 1) != root, deadline));
}

bool RingCollective::is_called(Deadline deadline) {
  if (!stash_.empty()) return true;
  std::string frame;
  if (!broken_.ok() || ranks() == 1 || !take(deadline, frame).ok()) return false;
  stash_.push_back(std::move(frame));
  return true;
}

Status RingCollective::send_bytes(std::string_view bytes, Deadline deadline) {
  const auto chunk = static_cast<size_t>(std::max<int64_t>(1, options_.chunk_bytes));
  size_t at = 0;
  do {  // one frame at least, to tell the size
    const std::string_view part = bytes.substr(at, chunk);
    STREAMVEC_RETURN_IF_ERROR(send_chunk(Kind::kBytes, static_cast<int64_t>(bytes.size()), part, deadline));
    at += part.size();
  } while (at < bytes.size());
  return {};
}

Status RingCollective::receive_bytes(std::string& bytes, bool on, Deadline deadline) {
  bytes.clear();
  int64_t size = 0;
  do {
    std::string frame;
    STREAMVEC_RETURN_IF_ERROR(receive_chunk(Kind::kBytes, frame, size, deadline));
    if (bytes.size() + frame.size() - kHeader > static_cast<size_t>(size))
      return error(Code::kInvalidArgument, "node ", previous(), " sent more than the ", size, " bytes it announced");
    if (bytes.empty()) bytes.reserve(std::min(static_cast<size_t>(size), kAtOnce));
    bytes.append(frame, kHeader);
    if (on) STREAMVEC_RETURN_IF_ERROR(pass_on(std::move(frame), deadline));
  } while (bytes.size() < static_cast<size_t>(size));
  return {};
}

Status RingCollective::send_chunk(Kind kind, int64_t size, std::string_view bytes, Deadline deadline) {
  std::string frame;
  frame.reserve(kHeader + bytes.size() + sizeof(uint32_t));  // Channels adds its number
  frame.resize(kHeader);
  set_header(frame, {.kind = static_cast<uint32_t>(kind), .size = static_cast<uint64_t>(size)});
  frame += bytes;
  return pass_on(std::move(frame), deadline);
}

Status RingCollective::pass_on(std::string frame, Deadline deadline) {
  while (transport_.queued_bytes(next()) > options_.queue_bytes_max) {
    if (deadline.passed()) return error(Code::kDeadlineExceeded, "node ", next(), " takes nothing");
    // The next may wait, too, for us to take what it sends: so we do.
    std::string came;
    const Status status = take(Deadline::after(std::chrono::microseconds(200)), came);
    if (status.ok()) {
      stash_.push_back(std::move(came));
    } else if (status.code() != Code::kDeadlineExceeded) {
      return status;
    }
  }
  Header header = header_of(frame);
  header.sequence = sent_++;
  header.group = number_;
  set_header(frame, header);
  transport_.send(next(), std::move(frame));
  return {};
}

Status RingCollective::receive_chunk(Kind kind, std::string& frame, int64_t& size, Deadline deadline) {
  if (!stash_.empty()) {
    frame = std::move(stash_.front());
    stash_.pop_front();
  } else {
    STREAMVEC_RETURN_IF_ERROR(take(deadline, frame));
  }
  const Header header = header_of(frame);
  if (header.sequence != received_)
    return error(Code::kUnavailable, "frames of node ", previous(), " got lost: frame ", header.sequence, " after ",
                 received_);
  ++received_;
  if (header.kind != static_cast<uint32_t>(kind))
    return error(Code::kInvalidArgument, "node ", previous(), " does something else than this one");
  size = static_cast<int64_t>(header.size);
  return {};
}

Status RingCollective::take(Deadline deadline, std::string& frame) {
  for (NodeId from = 0;;) {
    Deadline look = deadline;
    if (options_.interrupted) {
      if (options_.interrupted()) return error(Code::kAborted, "the ring is about to be formed anew");
      look = std::min(look, Deadline::after(kInterruptLook),
                      [](const Deadline& a, const Deadline& b) { return a.when() < b.when(); });
    }
    const auto begun = Deadline::Clock::now();
    const Status status = transport_.receive(look, from, frame);
    if (status.ok()) {
      if (is_ours(from, frame)) return {};
      continue;
    }
    if (status.code() != Code::kDeadlineExceeded) return status;
    if (look.when() == deadline.when())
      return error(Code::kDeadlineExceeded, "nothing came from node ", previous(), " (rank ", place(rank_ - 1),
                   ") in time");
    // As long as it was to be: one that is stopped meanwhile does not count that as the others' silence.
    STREAMVEC_RETURN_IF_ERROR(note_silence(std::chrono::duration<double>(look.when() - begun).count()));
  }
}

bool RingCollective::is_ours(NodeId from, std::string& frame) {
  if (frame.size() < kHeader) return false;
  const Header header = header_of(frame);
  if (header.group > number_) early_.emplace_back(from, std::move(frame));
  if (header.group != number_ || from != previous()) return false;
  silent_s_ = 0;
  return header.kind != static_cast<uint32_t>(Kind::kAlive);
}

void RingCollective::tell_alive() {
  constexpr double kAliveShare = 8;  // as often within the silence that is borne
  const double now_s = clock_seconds();
  if (options_.silent_max_s <= 0 || ranks() == 1 || now_s - told_alive_s_ < options_.silent_max_s / kAliveShare) return;
  told_alive_s_ = now_s;
  std::string alive(kHeader, '\0');
  set_header(alive, {.kind = static_cast<uint32_t>(Kind::kAlive), .group = number_});
  transport_.send(next(), std::move(alive));
}

Status RingCollective::note_silence(double seconds) {
  if (options_.silent_max_s <= 0) return {};
  tell_alive();
  silent_s_ += seconds;
  if (silent_s_ <= options_.silent_max_s) return {};
  return error(Code::kUnavailable, "nothing came from node ", previous(), " for ", options_.silent_max_s,
               " s, though others hear it");
}

Status RingCollective::keep(Status status) {
  if (!status.ok()) broken_ = status;
  return status;
}

}  // namespace streamvec
