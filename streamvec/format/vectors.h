// Vectors to and from the files of other programs: one call each way. docs/FORMATS.md describes every format.
#pragma once

#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

enum class VectorFormat {
  kWord2vecText,    // "word2vec": word2vec's and fastText's text, with a line `words dim` first
  kWord2vecBinary,  // "word2vec-bin"
  kGlove,           // "glove": word2vec's text without the first line
  kNpy,             // "npy": OUT for numpy.load, and the words in OUT (less .npy) + .vocab.tsv
  kSafetensors,     // "safetensors": OUT with `input` and `output`, words in OUT (less .safetensors) + .vocab.tsv
  kProjector,       // "projector": the directory OUT with tensors.tsv and metadata.tsv, for TensorBoard
  kFasttextBin,     // "fasttext-bin": fastText's model file, with n-grams where the model has them
};

// kInvalidArgument names those there are.
Result<VectorFormat> parse_format(std::string_view name);
std::string_view format_name(VectorFormat format);

// Writes the word vectors (safetensors and fasttext-bin: the context vectors too, where there are any). Each file
// appears whole or not at all; of two files both are on the disk before the words and then the vectors appear.
// kInvalidArgument: the format cannot carry a word, or a value is not finite; then nothing is written. Float32 survive
// every format bit for bit.
Status export_vectors(const Snapshot& snapshot, VectorFormat format, const std::string& out_path);

// Finds out which of the formats `path` is and reads it; text formats and word2vec's binary also compressed (gzip,
// zstd, xz, bzip2). `path` may also be a directory that holds projector files. For .npy and .safetensors the words are
// sought in PATH less its ending + .vocab.tsv, then + .vocab.txt (a word a line), then in vocab.tsv in the same
// directory; a list that was exported with other values (word_list.h) is refused. Words get the counts of their file
// or, where it has none, pseudo counts (snapshot_builder.h).
// Memory is taken for what is there, not for what a header says. Errors name the file and the line or byte offset.
Result<Snapshot> import_vectors(const std::string& path);

}  // namespace streamvec
