#include "streamvec/cluster/message_parts.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

TEST(MessageParts, AreTheMessageAgainWhicheverLengthItHasAndWhoeverElseSends) {
  for (size_t size : {1, 9, 10, 11, 20, 95}) {
    std::string message(size, 'a');
    const std::string other(35, 'B');
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<char>('a' + i % 26);
    const std::vector<std::string> parts = in_parts(message, 10), others = in_parts(other, 10);
    EXPECT_EQ(parts.size(), (size + 9) / 10);
    MessageParts come;
    for (size_t i = 0; i < std::max(parts.size(), others.size()); ++i) {
      for (const NodeId from : {1, 2}) {
        const std::vector<std::string>& sent = from == 1 ? parts : others;
        if (i >= sent.size()) continue;
        const auto whole = come.take(from, sent[i]);
        ASSERT_TRUE(whole.ok()) << whole.status().message();
        ASSERT_EQ(whole->has_value(), i + 1 == sent.size()) << i;
        EXPECT_EQ(whole->value_or(""), i + 1 < sent.size() ? "" : from == 1 ? message : other);
      }
    }
  }
}

TEST(MessageParts, OfANodeThatIsForgottenMakeNoMessage) {
  const std::vector<std::string> parts = in_parts("some words of all", 10);
  MessageParts come;
  ASSERT_TRUE(come.take(1, parts[0]).ok());
  come.forget_others({2});
  const auto rest = come.take(1, parts[1]);
  ASSERT_TRUE(rest.ok());
  EXPECT_FALSE(rest->has_value());
}

TEST(MessageParts, ThatNobodyWritesAreRefused) {
  MessageParts come;
  const std::string part = in_parts("some words", 4)[1];
  for (size_t size = 0; size <= 16; ++size) EXPECT_FALSE(come.take(1, part.substr(0, size)).ok()) << size;
  EXPECT_FALSE(come.take(1, part + "and more than there are").ok());
}

}  // namespace
}  // namespace streamvec
