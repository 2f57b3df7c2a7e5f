#include "streamvec/eval/products.h"

#include <algorithm>

#include "streamvec/cuda/device.h"
#include "streamvec/cuda/products.h"
#include "streamvec/eval/gram.h"

namespace streamvec {
namespace {

class CpuProducts final : public Products {
 public:
  Status top_k(MatrixView<const float> rows, MatrixView<const float> queries,
               std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) override {
    streamvec::top_k(rows, queries, excluded, k, hits);
    return {};
  }
  Status best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                        std::span<AnalogyAnswer> answers) override {
    streamvec::best_analogies(rows, questions, answers);
    return {};
  }
  Status cross_gram(MatrixView<const float> x, MatrixView<const float> y, std::span<double> out) override {
    const Eigen::MatrixXd product = streamvec::cross_gram(x, y);
    STREAMVEC_CHECK_EQ(static_cast<size_t>(product.size()), out.size());
    std::copy_n(product.data(), out.size(), out.data());
    return {};
  }
};

class OnCard final : public Products {
 public:
  explicit OnCard(std::unique_ptr<cuda::CardProducts> card) : card_(std::move(card)) {}

  Status top_k(MatrixView<const float> rows, MatrixView<const float> queries,
               std::span<const std::span<const int32_t>> excluded, int32_t k, std::span<Hit> hits) override {
    if (k > cuda::CardProducts::kNearestMax) return cpu_products().top_k(rows, queries, excluded, k, hits);
    return card_->top_k(rows, queries, excluded, k, hits);
  }
  Status best_analogies(MatrixView<const float> rows, std::span<const AnalogyQuestion> questions,
                        std::span<AnalogyAnswer> answers) override {
    return card_->best_analogies(rows, questions, answers);
  }
  Status cross_gram(MatrixView<const float> x, MatrixView<const float> y, std::span<double> out) override {
    return card_->cross_gram(x, y, out);
  }

 private:
  std::unique_ptr<cuda::CardProducts> card_;
};

}  // namespace

Products& cpu_products() {
  static CpuProducts products;
  return products;
}

Result<std::unique_ptr<Products>> make_products(std::string_view device) {
  STREAMVEC_ASSIGN_OR_RETURN(const bool cuda, cuda::use_cuda(device));
  if (!cuda) return std::unique_ptr<Products>(std::make_unique<CpuProducts>());
  Result<std::unique_ptr<cuda::CardProducts>> card = cuda::make_card_products();
  if (!card.ok() && device == "auto") return std::unique_ptr<Products>(std::make_unique<CpuProducts>());
  if (!card.ok()) return card.status();
  return std::unique_ptr<Products>(std::make_unique<OnCard>(std::move(card).value()));
}

}  // namespace streamvec
