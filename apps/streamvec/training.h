// What `train` and `demo` share: options, hooks and the words of the progress line.
#pragma once

#include <atomic>
#include <string>

#include "apps/streamvec/options.h"
#include "apps/streamvec/progress.h"
#include "streamvec/train/trainer.h"

namespace streamvec::cli {

// The progress line of one run: share done, speed, learning rate, loss, time left.
class ProgressText {
 public:
  std::string operator()(const TrainProgress& progress);

 private:
  double fraction_first_ = -1;  // where this run began
  double seconds_first_ = 0;
};

std::string counting_text(int64_t tokens, double fraction);
// Hooks that show progress on `line` and stop when `stop` is set; both must outlive the training.
TrainHooks hooks_on(ProgressLine& line, const std::atomic<bool>& stop);
// The options of `train` as they were given.
TrainOptions train_options(const Arguments& arguments);

}  // namespace streamvec::cli
