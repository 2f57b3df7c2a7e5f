#include "streamvec/core/shared_library.h"

#include <gtest/gtest.h>

#include <cstring>

namespace streamvec {
namespace {

TEST(SharedLibrary, FindsFunctionsOfALibraryThatIsThere) {
  SharedLibrary library("libc.so.6");
  decltype(&std::strlen) length = nullptr;
  library.find("strlen", length);
  ASSERT_EQ(library.error(), "");
  EXPECT_EQ(length("four"), 4u);
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  SharedLibrary library("libc.so.6");
  decltype(&std::strlen) length = &std::strlen;
  library.find("strlen_of_words", length);
  EXPECT_EQ(length, nullptr);
  EXPECT_EQ(library.error(), "it has no strlen_of_words");
}

TEST(SharedLibrary, ALibraryThatIsMissingIsAnErrorWithItsName) {
  SharedLibrary library("libnowhere.so.1", {"/nowhere"});
  decltype(&std::strlen) length = &std::strlen;
  library.find("strlen", length);
  EXPECT_EQ(length, nullptr);
  EXPECT_NE(library.error().find("libnowhere.so.1"), std::string::npos) << library.error();
}

}  // namespace
}  // namespace streamvec
