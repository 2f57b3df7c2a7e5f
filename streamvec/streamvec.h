// The library in one include: train on text, load a model, ask it.
//
//   streamvec::TrainOptions options;
//   options.dim = 100;
//   auto trained = streamvec::train(options, {"corpus.txt"}, "model", streamvec::TrainHooks());
//   auto vectors = streamvec::WordVectors::load("model");
//   if (vectors.ok()) auto near = vectors->most_similar({"king", "woman"}, {"man"});
//
// Errors are values (core/status.h): look at ok() before the value. CMake: find_package(streamvec), then link
// streamvec::streamvec. The names here stay; those of other headers may change from version to version.
#pragma once

#include "streamvec/api/word_vectors.h"        // WordVectors: load, most_similar, similarity, ...
#include "streamvec/core/status.h"             // Status, Result, Code
#include "streamvec/source/document_source.h"  // documents of one's own to train on
#include "streamvec/train/trainer.h"           // train(), TrainOptions, TrainProgress, TrainHooks
