#include "streamvec/train/device_choice.h"

#include "streamvec/cuda/device.h"

namespace streamvec {
namespace {

// What the card cannot train yet; ok for what it can.
Status check_card(const TrainOptions& options, const std::string& model) {
  const auto on_cpu = [](const auto&... what) {
    return error(Code::kUnimplemented, "--device cuda does not train ", what..., "; try --device cpu");
  };
  if (model != "sgns" && model != "rbsg" && model != "hybrid") return on_cpu("--model ", model);
  if (options.optimizer == "adam" && model != "rbsg") return on_cpu("with --optimizer ", options.optimizer);
  if (options.table != "fp32" && model == "rbsg") return on_cpu("--model rbsg with --table ", options.table);
  if (options.products && model != "rbsg") return on_cpu("--model ", model, " with --products");
  if (options.cluster.on()) return on_cpu("as a node of a cluster");
  if (options.kernel != "auto") return on_cpu("with --kernel ", options.kernel);
  return {};
}

}  // namespace

Status check_without_card(const TrainOptions& options) {
  if (options.table != "fp32")
    return error(Code::kInvalidArgument, "--table ", options.table, " is for --device cuda; leave it out on the CPU");
  if (options.products)
    return error(Code::kInvalidArgument, "--products is for --device cuda and --model rbsg; leave it out elsewhere");
  return {};
}

Result<std::string> chosen_device(const TrainOptions& options, const std::string& model) {
  STREAMVEC_ASSIGN_OR_RETURN(const bool cuda, cuda::use_cuda(options.device));
  const Status fits = check_card(options, model);
  if (cuda && !fits.ok() && options.device == "cuda") return fits;
  if (cuda && fits.ok()) return std::string("cuda");
  STREAMVEC_RETURN_IF_ERROR(check_without_card(options));
  return std::string("cpu");
}

}  // namespace streamvec
