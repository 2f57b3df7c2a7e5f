// What this folder answers in a build without CUDA.
#include "streamvec/cuda/device.h"
#include "streamvec/cuda/pair_adam.h"
#include "streamvec/cuda/products.h"
#include "streamvec/cuda/rbsg_trainer.h"
#include "streamvec/cuda/sgns_trainer.h"

namespace streamvec::cuda {
namespace {

Status no_cuda() {
  return error(Code::kUnimplemented,
               "this build of streamvec has no CUDA; try --device cpu, or build where nvcc is found");
}

}  // namespace

Result<Device> find_device() {
  return no_cuda();
}

Status check_device_memory(std::string_view, double, std::string_view) {
  return no_cuda();
}

Result<std::unique_ptr<PairAdam>> make_pair_adam(const PairAdamOptions&) {
  return no_cuda();
}

Result<std::unique_ptr<CardProducts>> make_card_products() {
  return no_cuda();
}

Result<std::unique_ptr<RbsgTrainer>> make_rbsg_trainer(const RbsgShape&) {
  return no_cuda();
}

Result<std::unique_ptr<SgnsTrainer>> make_sgns_trainer(const SgnsOptions&) {
  return no_cuda();
}

}  // namespace streamvec::cuda
