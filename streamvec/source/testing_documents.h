// For tests only: what a source gives.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "streamvec/core/deadline.h"
#include "streamvec/source/source.h"

namespace streamvec {

// What comes until nothing has for so long.
inline std::vector<Document> drained(Source& source, int wait_ms = 30) {
  std::vector<Document> documents;
  for (;;) {
    const Result<int64_t> count = source.read(100, Deadline::after(std::chrono::milliseconds(wait_ms)), documents);
    if (count.ok()) continue;
    EXPECT_EQ(count.status().code(), Code::kDeadlineExceeded) << count.status().message();
    return documents;
  }
}

inline std::vector<std::string> texts(const std::vector<Document>& documents) {
  std::vector<std::string> all;
  for (const Document& document : documents) all.push_back(document.text);
  return all;
}

}  // namespace streamvec
