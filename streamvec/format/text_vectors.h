// Vectors as lines of text, `word v1 v2 ...`: word2vec's (and fastText's .vec) with a first line `words dim`, GloVe's
// without. Words are written as they are, so a word with white space in it cannot be written (kInvalidArgument names
// it). Reading takes a blank in a word where nothing else makes sense: Stanford's GloVe files have such words.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/status.h"
#include "streamvec/format/input_stream.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// The first line of word2vec's formats.
struct Word2vecHeader {
  int64_t rows = 0;
  int64_t dim = 0;
};

// Nothing when the line is not two whole numbers. "3 1" could also be a GloVe row of one value: it counts as a header.
std::optional<Word2vecHeader> parse_word2vec_header(std::string_view line);

// Refuses a header that promises nothing, vectors longer than kDimMax, or more rows than the rest of a plain file
// has room for at value_bytes_min a value and 2 more a row. Returns for how many rows a table is made at first.
Result<int64_t> check_word2vec_header(const Word2vecHeader& header, const InputStream& input, int64_t value_bytes_min);

// Reads to the end; the stream stands at its beginning. Errors name the file and the line: a row with too few or too
// many values, a value that is not finite, a word met before, more or fewer rows than the header says, a last line
// without an end. A GloVe file cut between two lines cannot be told from a shorter one.
Result<Snapshot> read_word2vec_text(InputStream& input);
Result<Snapshot> read_glove(InputStream& input);

Status write_word2vec_text(const Snapshot& snapshot, FileWriter& file);
Status write_glove(const Snapshot& snapshot, FileWriter& file);

// TensorBoard's projector: `tensors` has a line of tab-separated values per word, `metadata` the words and counts,
// after a line of column names. A word with a tab or a line end cannot be written. Read back, words are the first
// column, counts the column named "count" if there is one; metadata of a single column has no line of names.
Status write_projector(const Snapshot& snapshot, FileWriter& tensors, FileWriter& metadata);
Result<Snapshot> read_projector(InputStream& tensors, InputStream& metadata);

// kInvalidArgument when a word has one of the bytes in `forbidden`; `format` is for the message.
Status check_words(const Vocabulary& vocabulary, std::string_view forbidden, std::string_view format);

// The bytes that programs reading word2vec's and GloVe's formats take for the end of a word.
constexpr std::string_view kWordEnds{" \t\n\v\f\r\0", 7};
constexpr std::string_view kColumnEnds = "\t\n\r";  // the same for the projector's

}  // namespace streamvec
