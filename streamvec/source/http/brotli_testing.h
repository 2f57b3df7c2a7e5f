// Compressed as web servers do it with `br`, for tests.
#pragma once

#include <brotli/encode.h>
#include <gtest/gtest.h>

#include <string>

namespace streamvec {

inline std::string brotli_bytes(const std::string& text) {
  size_t size = BrotliEncoderMaxCompressedSize(text.size()) + 64;
  std::string out(size, '\0');
  EXPECT_TRUE(BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, text.size(),
                                    reinterpret_cast<const uint8_t*>(text.data()), &size,
                                    reinterpret_cast<uint8_t*>(out.data())));
  out.resize(size);
  return out;
}

}  // namespace streamvec
