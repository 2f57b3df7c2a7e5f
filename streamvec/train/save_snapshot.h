// A Snapshot that no training run made, as a model directory.
#pragma once

#include <string>

#include "streamvec/core/status.h"
#include "streamvec/model/snapshot.h"

namespace streamvec {

// kAlreadyExists when `dir` holds a model: for who wants to know before there is a snapshot.
Status check_holds_no_model(const std::string& dir);

// Makes `dir` a model directory that holds the snapshot, and that training can go on with. `origin` says in state.json
// where the vectors are from. kAlreadyExists when it holds a model, kFailedPrecondition when it holds anything else,
// another process writes there, or the model is of a kind that only training can save (hybrid, rbsg); nothing is
// changed then.
Status save_snapshot(const Snapshot& snapshot, const std::string& origin, const std::string& dir);

}  // namespace streamvec
