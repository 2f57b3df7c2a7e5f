// The subcommands, a file each. Before a command runs, its misuse_of_* says what of its arguments does not fit
// together, without looking at any file, host or model: is_misuse() (options.h) is exit 2. Then run_* prints the result
// on standard output and returns the exit code, or an error, which main prints as one line and turns into exit 1.
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

Status misuse_of_demo(const Arguments& arguments);
Status misuse_of_train(const Arguments& arguments);
Status misuse_of_source(const Arguments& arguments);
Status misuse_of_launch(const Arguments& arguments);
Status misuse_of_reproduce(const Arguments& arguments);
Status misuse_of_simulate(const Arguments& arguments);
Status misuse_of_serve(const Arguments& arguments);
// Of commands that are asked about words: an empty one.
Status misuse_of_words(const Arguments& arguments);

}  // namespace streamvec::cli
