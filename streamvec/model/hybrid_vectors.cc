#include "streamvec/model/hybrid_vectors.h"

#include <algorithm>

namespace streamvec {

Status HybridVectors::generate(std::string_view word, std::span<float> out) const {
  if (word.empty()) return error(Code::kInvalidArgument, "the empty string has no vector");
  if (!hybrid_->has_learnt())
    return error(Code::kFailedPrecondition, "\"", word, "\" was never seen, and the generator has not learnt yet: ",
                 "it has not gone over the words once; try to train on, or, where several nodes train on streams, to "
                 "ask the one that leads");
  STREAMVEC_ASSIGN_OR_RETURN(Matrix row, Matrix::make(1, static_cast<int64_t>(out.size())));  // padded, unlike `out`
  hybrid_->make_vector(word, row.row(0));
  std::copy_n(row.row(0), out.size(), out.data());
  return {};
}

}  // namespace streamvec
