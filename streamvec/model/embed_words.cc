#include "streamvec/model/embed_words.h"

#include <algorithm>
#include <atomic>

#include "streamvec/core/threads.h"
#include "streamvec/kernel/row_buffer.h"
#include "streamvec/model/int8_encoder.h"
#include "streamvec/model/rbsg_batch.h"

namespace streamvec {
namespace {

// Words embedded at once: enough for products of hundreds of rows, few enough for their states to stay in cache.
constexpr int64_t kWordsAtOnce = 1'536;

// Each thread takes bulks of words in alphabetical order; `encode(trie, out)` of each, made by make_encode(), makes a
// bulk's vectors.
template <typename MakeEncode>
void embed_bulks(std::span<const std::span<const CharacterId>> words, int32_t threads, const MakeEncode& make_encode,
                 MatrixView<float> out) {
  std::vector<int32_t> order;
  order_by_spelling(words, order);
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    CharTrie trie;
    auto encode = make_encode();
    RowBuffer vectors;
    std::vector<std::span<const CharacterId>> some;
    for (int64_t begin; (begin = next.fetch_add(kWordsAtOnce)) < out.rows;) {
      const int64_t end = std::min(out.rows, begin + kWordsAtOnce);
      some.clear();
      for (int64_t i = begin; i < end; ++i) some.push_back(words[static_cast<size_t>(order[static_cast<size_t>(i)])]);
      trie.build(some);
      encode(trie, vectors.reserve(end - begin, out.cols));
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(vectors.row(i - begin), out.cols, out.row(order[static_cast<size_t>(i)]));
    }
  };
  Threads others;
  (void)others.start(threads - 1, [&](int64_t) { work(); });  // fewer are slower
  work();
}

}  // namespace

void embed_spellings(const EncoderParameters& encoder, const EmbedKernels& kernels,
                     std::span<const std::span<const CharacterId>> words, int32_t threads, MatrixView<float> out) {
  STREAMVEC_CHECK_EQ(out.rows, static_cast<int64_t>(words.size()));
  if (kernels.int8 && Int8EncoderWeights::can_hold(encoder)) {
    const Int8EncoderWeights weights(encoder);
    const auto make_encode = [&] {
      return [int8 = Int8Encoder(weights)](const CharTrie& trie, MatrixView<float> some) mutable {
        int8.forward(trie, some);
      };
    };
    return embed_bulks(words, threads, make_encode, out);
  }
  const PackedEncoder packed = TrieLstm(kernels.products).pack(encoder);
  const auto make_encode = [&] {
    return [&, lstm = TrieLstm(kernels.products)](const CharTrie& trie, MatrixView<float> some) mutable {
      lstm.forward_only(encoder, packed, trie, some);
    };
  };
  embed_bulks(words, threads, make_encode, out);
}

Status embed_words(const CharacterTable& characters, const EncoderParameters& encoder, const EmbedKernels& kernels,
                   std::span<const std::string_view> words, int32_t threads, MatrixView<float> out) {
  std::vector<Spelling> spellings(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) return error(Code::kInvalidArgument, "word ", i + 1, " is empty: it has no vector");
    characters.spell(words[i], spellings[i]);
  }
  const std::vector<std::span<const CharacterId>> views(spellings.begin(), spellings.end());
  embed_spellings(encoder, kernels, views, threads, out);
  return {};
}

}  // namespace streamvec
