// The vectors of many words by a character encoder: sorted, so that those with common beginnings share their work.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/kernel/packed_gemm.h"
#include "streamvec/model/spelling.h"
#include "streamvec/model/trie_lstm.h"

namespace streamvec {

struct EmbedKernels {
  std::shared_ptr<const PackedGemm> products;
  bool int8 = false;  // an LSTM's levels in 8 bits (int8_encoder.h), where the CPU can
};

// Writes the vector of words[i] to row i of `out`, on `threads` threads. REQUIRES: `out` has as many rows as there are
// words, and the encoder's dim; the encoder has rows for all characters.
void embed_spellings(const EncoderParameters& encoder, const EmbedKernels& kernels,
                     std::span<const std::span<const CharacterId>> words, int32_t threads, MatrixView<float> out);

// The same for words as they are written. kInvalidArgument for an empty one.
Status embed_words(const CharacterTable& characters, const EncoderParameters& encoder, const EmbedKernels& kernels,
                   std::span<const std::string_view> words, int32_t threads, MatrixView<float> out);

}  // namespace streamvec
