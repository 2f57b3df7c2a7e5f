// vocab.tsv: a vocabulary as text that any spreadsheet, awk or pandas reads.
//
// The first line starts with '#' and names the columns, separated by tabs: "#word", "count", and "spellings" where the
// vocabulary has aliases; a reader skips columns it does not know. Then one line per slot, in the order of the slots,
// every line ended by '\n':
//   word        its bytes, mostly UTF-8 but not necessarily (imported vectors hold what they hold)
//   count       occurrences, decimal, 0 .. 2^63 - 1
//   spellings   further spellings that lead to this slot, separated by single spaces; may be empty. One that is another
//               line's word is that word by name, and a spelling of this one where a text has it
// In words and spellings \t \n \r \0 and \\ stand for tab, line feed, carriage return, NUL and backslash; in
// spellings, \s for a space.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/vocab/vocabulary.h"

namespace streamvec {

// Aliases come out grouped by slot. What is written is read back equal, aliases in that order.
std::string format_vocabulary(const Vocabulary& vocabulary);
// The same without holding the text in memory. A stream that fails is the caller's to notice (out.good()).
// `last_column`: the name of one more, empty in every row, which readers skip; "" none.
void write_vocabulary(const Vocabulary& vocabulary, std::ostream& out, std::string_view last_column = {});

// Reads what format_vocabulary() made. Memory grows only with bytes that were really read, and a line has at most
// 16 MB. kDataLoss, with `path` and the line's number, for: no header, missing columns, a count that is no number or
// too large, an empty or repeated word or spelling, an unknown escape, a last line without its '\n' (the file was cut
// short).
Result<Vocabulary> parse_vocabulary(std::string_view text, const std::string& path);
Result<Vocabulary> read_vocabulary(std::istream& in, const std::string& path);

}  // namespace streamvec
