// Products of float matrices where one right factor serves many of them, as the weights of a recurrent layer do: it is
// brought into the kernel's own form once (pack()), and then left factors of any number of rows are multiplied with it.
// Kinds, by the names of --kernel: `reference` (plain loops, sums in double), `simd` (f32: own AVX-512 loops, else
// oneDNN), `bf16` (AVX-512 dot products) and `amx` (bf16 tiles). The last two round both factors to bf16; sums stay
// f32.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/kernel/gemm.h"
#include "streamvec/kernel/left_rows.h"
#include "streamvec/kernel/scratch.h"

namespace streamvec {

// A right factor in the form of the kernel that packed it; a copy, and memory that is kept for the next one.
struct PackedFactor {
  int64_t rows = 0, cols = 0;
  AlignedBuffer<uint32_t> words;
};

// Thread-safe; runs on the calling thread alone. Equal arguments give equal bits.
class PackedGemm {
 public:
  virtual ~PackedGemm() = default;
  virtual std::string name() const = 0;
  virtual void pack(const Factor& b, PackedFactor& to) const = 0;
  // c = a b, or c += a b. REQUIRES: this kernel packed b; the shapes fit; c overlaps nothing. Any side may be 0 long.
  virtual void multiply(const Factor& a, const PackedFactor& b, bool add, MatrixView<float> c) const = 0;

  // Left factors that are written as the kernel reads them.
  virtual LeftForm left_form() const = 0;
  // c = a times the columns first .. first + c.cols - 1 of b, or c +=, so that who needs some of them at a time finds
  // them in cache. REQUIRES: as above; `a` is in left_form(), and of a LeftBuffer unless it is of floats; `first` is a
  // multiple of 32.
  virtual void multiply_columns(const LeftRows& a, const PackedFactor& b, int64_t first, bool add,
                                MatrixView<float> c) const = 0;
};

// `auto` is the fastest this machine has. kInvalidArgument for a kind nobody knows, kFailedPrecondition for one that
// this machine cannot run.
Result<std::shared_ptr<const PackedGemm>> make_packed_gemm(std::string_view kind);

}  // namespace streamvec
