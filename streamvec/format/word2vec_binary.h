// word2vec's binary format: a line `words dim`, then for each word its bytes, a space, and dim float32 (little-endian).
// word2vec.c ends each vector with a line feed, gensim does not; both are read. Written as word2vec.c does.
#pragma once

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/format/input_stream.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// Reads to the end; the stream stands at its beginning. Errors name the file and a byte offset: a file cut short, a
// header that promises more than the file holds, a value that is not finite, a word met before, bytes that follow.
Result<Snapshot> read_word2vec_binary(InputStream& input);

// A word with white space in it cannot be written (kInvalidArgument names it).
Status write_word2vec_binary(const Snapshot& snapshot, FileWriter& file);

}  // namespace streamvec
