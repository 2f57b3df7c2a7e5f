#include "streamvec/kernel/packed_gemm.h"

#include <algorithm>
#include <bit>

#include "streamvec/kernel/bf16_gemm.h"
#include "streamvec/kernel/packed_panels.h"

namespace streamvec {
namespace {

// Of the depth, so that a panel of b stays in the first cache while all rows of `a` meet it.
constexpr int64_t kWordsAtOnce = 256;

int64_t padded(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void check_shapes(const Factor& a, const PackedFactor& b, const MatrixView<float>& c) {
  STREAMVEC_CHECK_EQ(a.rows(), c.rows);
  STREAMVEC_CHECK_EQ(b.cols, c.cols);
  STREAMVEC_CHECK_EQ(a.cols(), b.rows);
}

// Over floats as they are, by oneDNN or by plain loops.
class PlainGemm final : public PackedGemm {
 public:
  explicit PlainGemm(bool reference) : reference_(reference) {}
  std::string name() const override { return reference_ ? "reference" : "simd"; }

  void pack(const Factor& b, PackedFactor& to) const override {
    to.rows = b.rows();
    to.cols = b.cols();
    uint32_t* word = to.words.reserve(static_cast<size_t>(to.rows * to.cols));
    for (int64_t i = 0; i < to.rows; ++i)
      for (int64_t j = 0; j < to.cols; ++j)
        *word++ = std::bit_cast<uint32_t>(b.transposed ? b.values.row(j)[i] : b.values.row(i)[j]);
  }

  void multiply(const Factor& a, const PackedFactor& b, bool add, MatrixView<float> c) const override {
    check_shapes(a, b, c);
    const MatrixView<const float> values{reinterpret_cast<const float*>(b.words.data()), b.rows, b.cols, b.cols};
    if (reference_) return multiply_reference(a, values, add ? 1.0f : 0.0f, c);
    add ? multiply_add(a, values, c) : streamvec::multiply(a, values, c);
  }

  LeftForm left_form() const override { return LeftForm::kFloat; }

  void multiply_columns(const LeftRows& a, const PackedFactor& b, int64_t first, bool add,
                        MatrixView<float> c) const override {
    const MatrixView<const float> rows{a.row<float>(0), a.rows, a.cols, a.stride / 4};
    const MatrixView<const float> columns{reinterpret_cast<const float*>(b.words.data()) + first, b.rows, c.cols,
                                          b.cols};
    if (reference_) return multiply_reference(rows, columns, add ? 1.0f : 0.0f, c);
    add ? multiply_add(rows, columns, c) : streamvec::multiply(rows, columns, c);
  }

 private:
  const bool reference_;
};

class PanelsGemm final : public PackedGemm {
 public:
  explicit PanelsGemm(const PanelGemm& panels) : panels_(panels) {}
  std::string name() const override { return panels_.name; }

  void pack(const Factor& b, PackedFactor& to) const override {
    to.rows = b.rows();
    to.cols = b.cols();
    const int64_t words = words_of(to.rows);
    uint32_t* packed = to.words.reserve(static_cast<size_t>(words * padded(to.cols, kPanelColumns)));
    const MatrixView<const float>& values = b.values;
    (b.transposed ? pack_panels_transposed : pack_panels)(values.data, values.stride, values.rows, values.cols,
                                                          panels_.pairs, words, packed);
  }

  void multiply(const Factor& a, const PackedFactor& b, bool add, MatrixView<float> c) const override {
    check_shapes(a, b, c);
    if (c.rows == 0 || c.cols == 0) return;
    multiply_panels(words_of_left(a, words_of(b.rows)), b, 0, add, c);
  }

  LeftForm left_form() const override { return panels_.pairs ? LeftForm::kBf16 : LeftForm::kFloat; }

  void multiply_columns(const LeftRows& a, const PackedFactor& b, int64_t first, bool add,
                        MatrixView<float> c) const override {
    STREAMVEC_CHECK_EQ(a.cols, b.rows);
    STREAMVEC_CHECK_EQ(a.rows, c.rows);
    if (c.rows == 0 || c.cols == 0) return;
    const int64_t stride = a.stride / static_cast<int64_t>(sizeof(uint32_t));
    if (panels_.pairs) return multiply_panels({a.row<const uint32_t>(0), stride}, b, first, add, c);
    const MatrixView<const float> values{a.row<const float>(0), a.rows, a.cols, stride};
    multiply_panels(words_of_left(values, words_of(b.rows)), b, first, add, c);
  }

 private:
  struct Rows {
    const uint32_t* words;
    int64_t stride;
  };

  void multiply_panels(const Rows& rows, const PackedFactor& b, int64_t first, bool add, MatrixView<float> c) const {
    const int64_t words = words_of(b.rows);
    for (int64_t j = 0; j < c.cols; j += kPanelColumns) {
      const uint32_t* panel = b.words.data() + (first + j) * words;
      if (c.cols - j >= kPanelColumns)
        multiply_panel(rows, panel, words, add, some_columns(c, j, kPanelColumns));
      else
        multiply_last(rows, panel, words, add, some_columns(c, j, c.cols - j));
    }
  }

  int64_t words_of(int64_t depth) const { return padded(panels_.pairs ? (depth + 1) / 2 : depth, 16); }

  static MatrixView<float> some_columns(MatrixView<float> view, int64_t begin, int64_t count) {
    return {view.data + begin, view.rows, count, view.stride};
  }

  // `a` as words. Floats that need no padding are read where they are.
  Rows words_of_left(const Factor& a, int64_t words) const {
    const MatrixView<const float>& values = a.values;
    if (!panels_.pairs && !a.transposed && a.cols() == words)
      return {reinterpret_cast<const uint32_t*>(values.data), values.stride};
    thread_local AlignedBuffer<uint32_t> memory;
    uint32_t* packed = memory.reserve(static_cast<size_t>(padded(a.rows(), panels_.row_multiple) * words));
    (a.transposed ? pack_columns : pack_rows)(values.data, values.stride, values.rows, values.cols, panels_.pairs,
                                              words, packed);
    return {packed, words};
  }

  void multiply_panel(const Rows& rows, const uint32_t* panel, int64_t words, bool add, MatrixView<float> c) const {
    for (int64_t k = 0; k == 0 || k < words; k += kWordsAtOnce)
      panels_.multiply(rows.words + k, rows.stride, c.rows, panel + k * kPanelColumns,
                       std::min(kWordsAtOnce, words - k), add || k > 0, c.data, c.stride);
  }

  // A panel that c has only some columns of.
  void multiply_last(const Rows& rows, const uint32_t* panel, int64_t words, bool add, MatrixView<float> c) const {
    thread_local AlignedBuffer<float> memory;
    const MatrixView<float> sums{memory.reserve(static_cast<size_t>(c.rows * kPanelColumns)), c.rows, kPanelColumns,
                                 kPanelColumns};
    multiply_panel(rows, panel, words, false, sums);
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t j = 0; j < c.cols; ++j) c.row(i)[j] = (add ? c.row(i)[j] : 0.0f) + sums.row(i)[j];
  }

  const PanelGemm& panels_;
};

}  // namespace

Result<std::shared_ptr<const PackedGemm>> make_packed_gemm(std::string_view kind) {
  using Made = std::shared_ptr<const PackedGemm>;
  if (kind == "auto") kind = cpu_has_amx_bf16() ? "amx" : cpu_has_avx512_bf16() ? "bf16" : "simd";
  if (kind == "reference") return Made(std::make_shared<PlainGemm>(true));
  if (kind == "simd" && !cpu_has_avx512()) return Made(std::make_shared<PlainGemm>(false));
  if (kind == "simd") return Made(std::make_shared<PanelsGemm>(panel_gemm_f32()));
  if (kind != "bf16" && kind != "amx")
    return error(Code::kInvalidArgument, "no kernel is called '", kind, "'; try auto, reference, simd, bf16 or amx");
  if (kind == "bf16" ? !cpu_has_avx512_bf16() : !cpu_has_amx_bf16())
    return error(Code::kFailedPrecondition, "this CPU cannot run the ", kind, " kernel; try --kernel auto");
  return Made(std::make_shared<PanelsGemm>(kind == "bf16" ? panel_gemm_bf16() : panel_gemm_amx()));
}

}  // namespace streamvec
