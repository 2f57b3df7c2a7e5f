#include "streamvec/model/rbsg_vectors.h"

#include <algorithm>
#include <cstring>

#include "streamvec/model/embed_words.h"

namespace streamvec {
namespace {

constexpr std::string_view kRbsgMagic = "svrbsgch";
constexpr uint32_t kVersion = 1;
constexpr int32_t kSideMax = 1 << 16;

// The fixed part of rbsg.bin, little-endian as memory has it; the characters follow.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t cell;  // 0 LSTM, 1 GRU
  int32_t dim, hidden, character_dim;
  int32_t characters_max, length_max;
  uint32_t begin_mark, end_mark, fold_case;
  int64_t characters;
};
static_assert(sizeof(Header) == 56);

Status damaged(const std::string& path, int64_t offset, const char* what) {
  return error(Code::kDataLoss, path, ": byte ", offset, ": ", what, "; the file was damaged");
}

bool can_be(const Header& header) {
  const auto within = [](int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; };
  return header.cell <= 1 && header.begin_mark <= 1 && header.end_mark <= 1 && header.fold_case <= 1 &&
         within(header.dim, 1, kSideMax) && within(header.hidden, 16, kSideMax) && header.hidden % 16 == 0 &&
         within(header.character_dim, 1, kSideMax) && within(header.length_max, 2, 1 << 20) &&
         within(header.characters_max, CharacterTable::kFixed, kSideMax) &&
         within(header.characters, 0, header.characters_max - CharacterTable::kFixed);
}

}  // namespace

std::string RbsgIndex::encode() const {
  Header header{};
  std::memcpy(header.magic, kRbsgMagic.data(), sizeof header.magic);
  header.version = kVersion;
  header.cell = shape.cell == RecurrentCell::kGru ? 1 : 0;
  header.dim = shape.dim;
  header.hidden = shape.hidden;
  header.character_dim = shape.character_dim;
  header.characters_max = characters.size_max;
  header.length_max = characters.length_max;
  header.begin_mark = characters.begin_mark ? 1 : 0;
  header.end_mark = characters.end_mark ? 1 : 0;
  header.fold_case = fold_case ? 1 : 0;
  header.characters = static_cast<int64_t>(admitted.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(admitted.data()), admitted.size() * sizeof(char32_t));
  return bytes;
}

Result<RbsgIndex> RbsgIndex::decode(std::string_view bytes, const std::string& path) {
  Header header;
  if (bytes.size() < sizeof header) return damaged(path, static_cast<int64_t>(bytes.size()), "the header is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, sizeof header.magic) != kRbsgMagic) return damaged(path, 0, "no svrbsgch");
  if (header.version != kVersion) return damaged(path, 8, "a version that is not known");
  if (!can_be(header)) return damaged(path, 12, "settings that cannot be");
  if (bytes.size() - sizeof header != static_cast<size_t>(header.characters) * sizeof(char32_t))
    return damaged(path, 48, "another number of characters than follow");
  RbsgIndex index;
  index.characters = {header.characters_max, header.length_max, header.begin_mark == 1, header.end_mark == 1};
  index.fold_case = header.fold_case == 1;
  index.admitted.resize(static_cast<size_t>(header.characters));
  if (header.characters > 0)
    std::memcpy(index.admitted.data(), bytes.data() + sizeof header, bytes.size() - sizeof header);
  index.shape = {.characters = CharacterTable::kFixed + static_cast<int32_t>(header.characters),
                 .characters_max = header.characters_max,
                 .character_dim = header.character_dim,
                 .hidden = header.hidden,
                 .dim = header.dim,
                 .cell = header.cell == 1 ? RecurrentCell::kGru : RecurrentCell::kLstm};
  return index;
}

Result<std::shared_ptr<const RbsgVectors>> RbsgVectors::make(const RbsgIndex& index, EncoderParameters encoder) {
  STREAMVEC_ASSIGN_OR_RETURN(EncoderParameters wanted, EncoderParameters::make(index.shape));
  for (size_t i = 0; i < wanted.all().size(); ++i) {
    const Matrix &got = *encoder.all()[i].values, &shape = *wanted.all()[i].values;
    if (got.rows() != shape.rows() || got.cols() != shape.cols())
      return error(Code::kDataLoss, "the table ", wanted.all()[i].name, " is ", got.rows(), " x ", got.cols(),
                   " and not ", shape.rows(), " x ", shape.cols());
  }
  std::shared_ptr<RbsgVectors> made(new RbsgVectors());
  made->characters_ = CharacterTable(index.characters);
  STREAMVEC_RETURN_IF_ERROR(made->characters_.restore(index.admitted));
  made->encoder_ = std::move(encoder);
  made->fold_case_ = index.fold_case;
  STREAMVEC_ASSIGN_OR_RETURN(made->products_, make_packed_gemm("simd"));
  return std::shared_ptr<const RbsgVectors>(std::move(made));
}

Status RbsgVectors::generate(std::string_view word, std::span<float> out) const {
  if (word.empty()) return error(Code::kInvalidArgument, "the empty string has no vector");
  const auto dim = static_cast<int64_t>(out.size());
  return embed_words(characters_, encoder_, {products_}, std::span(&word, 1), 1, {out.data(), 1, dim, dim});
}

}  // namespace streamvec
