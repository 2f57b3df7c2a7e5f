// The subcommands, a file each. A command prints its result on standard output and returns its exit code, or an error,
// which main prints as one line and turns into exit 1.
#pragma once

#include "apps/streamvec/options.h"
#include "streamvec/core/status.h"

namespace streamvec::cli {

Result<int> run_demo(const Arguments& arguments);
Result<int> run_train(const Arguments& arguments);
Result<int> run_eval(const Arguments& arguments);
Result<int> run_nearest(const Arguments& arguments);
Result<int> run_analogy(const Arguments& arguments);
Result<int> run_vector(const Arguments& arguments);
Result<int> run_drift(const Arguments& arguments);
Result<int> run_export(const Arguments& arguments);
Result<int> run_import(const Arguments& arguments);
Result<int> run_source(const Arguments& arguments);
Result<int> run_launch(const Arguments& arguments);
Result<int> run_reproduce(const Arguments& arguments);
Result<int> run_simulate(const Arguments& arguments);
Result<int> run_serve(const Arguments& arguments);

}  // namespace streamvec::cli
