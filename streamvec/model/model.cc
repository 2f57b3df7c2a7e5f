#include "streamvec/model/model.h"

#include <iterator>

#include "streamvec/model/workers.h"

namespace streamvec {
namespace {

constexpr int32_t kCentresMax = 4'096;
constexpr std::string_view kModelNames[] = {"sgns", "cbow", "subword", "glove", "rbsg", "hybrid"};

}  // namespace

std::span<const std::string_view> model_names() {
  return kModelNames;
}

Status check_model(std::string_view model) {
  std::string known;
  for (const std::string_view name : kModelNames) {
    if (name == model) return {};
    known += (known.empty() ? "" : name == std::end(kModelNames)[-1] ? " or " : ", ") + std::string(name);
  }
  return error(Code::kInvalidArgument, "no model is called '", model, "'; try ", known);
}

int32_t worker_count(const ModelOptions& options) {
  return options.model == "rbsg" ? 1 : options.threads;  // whose batches are computed by all threads together
}

double default_learning_rate(std::string_view model, OptimizerKind optimizer) {
  if (model == "rbsg") return optimizer == OptimizerKind::kAdam ? 1e-3 : 8e-3;  // else Muon
  if (model == "glove") return 0.05;  // as its authors have it; AdaGrad of its own, whatever the optimiser
  if (optimizer == OptimizerKind::kAdagrad) return 0.3;
  if (optimizer == OptimizerKind::kAdam) return 0.02;
  return model == "cbow" ? 0.2 : 0.05;  // a word of CBOW's mean gets only its share of the slope
}

Result<std::unique_ptr<ModelWorker>> make_model_worker(const ModelOptions& options, Parameters& parameters) {
  if (options.model == "glove") {
    STREAMVEC_ASSIGN_OR_RETURN(const GloveKernel glove, parse_glove_kernel(options.kernel));
    return make_glove_worker(parameters, glove);
  }
  if (options.model == "rbsg") return make_rbsg_worker(options, parameters);
  if (options.cuda) {
    STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<ModelWorker> tables, make_sgns_card_worker(options, parameters));
    return make_hybrid_worker(parameters, std::move(tables));
  }
  if (options.batch > kCentresMax)
    return error(Code::kInvalidArgument, "--batch is ", options.batch, "; --model ", options.model, " takes 1 to ",
                 kCentresMax, " centre words at one point");
  STREAMVEC_ASSIGN_OR_RETURN(std::unique_ptr<PairKernel> kernel, make_pair_kernel(options.kernel));
  if (options.model == "sgns")
    return make_sgns_worker(options.windows, options.batch, parameters, std::move(kernel), options.threads);
  if (options.model == "hybrid")
    return make_hybrid_worker(
        parameters, make_sgns_worker(options.windows, options.batch, parameters, std::move(kernel), options.threads));
  WindowOptions windows = options.windows;
  if (options.batch > 0) windows.centres = options.batch;
  windows = settled(windows);
  if (options.model == "cbow") return make_cbow_worker(windows, parameters, std::move(kernel));
  if (options.model == "subword") return make_subword_worker(windows, parameters, std::move(kernel));
  return check_model(options.model);
}

}  // namespace streamvec
