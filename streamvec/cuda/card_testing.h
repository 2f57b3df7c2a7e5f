// For tests that need a card.
#pragma once

#include <gtest/gtest.h>

#include "streamvec/cuda/device.h"

#define STREAMVEC_SKIP_WITHOUT_CARD()                                      \
  do {                                                                     \
    if (const auto found = ::streamvec::cuda::find_device(); !found.ok())  \
      GTEST_SKIP() << "needs a CUDA device: " << found.status().message(); \
  } while (false)
