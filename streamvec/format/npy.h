// numpy's .npy: a table of float32 in C order that np.load reads; what np.save wrote of float16, float32 or float64.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include "streamvec/core/durable_file.h"
#include "streamvec/core/matrix.h"
#include "streamvec/core/status.h"
#include "streamvec/format/stored_table.h"

namespace streamvec {

// Returns the XXH3 sum of the values, as they stand behind the header.
Result<uint64_t> write_npy(MatrixView<const float> table, FileWriter& file);

// The table's place, after the header was checked and found to describe the whole file. kDataLoss, with a byte offset,
// for a header that is damaged, or promises more or fewer bytes than there are; kInvalidArgument for another kind of
// array (not two dimensions, Fortran order, integers), with what to call in numpy.
Result<StoredTable> find_npy_table(const FileReader& file);

}  // namespace streamvec
