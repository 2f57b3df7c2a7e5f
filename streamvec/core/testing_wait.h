// For tests that wait for what other threads do.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "streamvec/core/deadline.h"

namespace streamvec {

// Looks again and again until it is so. A test that has waited in vain for a minute, longer than anything here takes on
// a machine that does other things, is told what for: EXPECT_TRUE(eventually("another leader", [&] { ... })).
inline ::testing::AssertionResult eventually(const std::string& what, const std::function<bool()>& is_so) {
  for (const Deadline deadline = Deadline::after(std::chrono::minutes(1)); !deadline.passed();) {
    if (is_so()) return ::testing::AssertionSuccess();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ::testing::AssertionFailure() << "waited for a minute, in vain, for " << what;
}

}  // namespace streamvec
