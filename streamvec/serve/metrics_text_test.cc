#include "streamvec/serve/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

TEST(MetricsText, TellsSourcesOfOneNameApart) {
  const nlohmann::ordered_json metrics = {
      {"sources",
       {{{"name", "a"}, {"documents", 1}}, {{"name", "a (2)"}, {"documents", 2}}, {{"name", "a"}, {"documents", 3}}}}};
  const std::string text = metrics_text(nullptr, metrics, nullptr, {}, 0);
  for (const char* line :
       {"streamvec_source_documents_total{source=\"a\"} 1\n", "streamvec_source_documents_total{source=\"a (2)\"} 2\n",
        "streamvec_source_documents_total{source=\"a (3)\"} 3\n"})
    EXPECT_THAT(text, testing::HasSubstr(line));
}

TEST(MetricsText, IsUtf8WhateverSourcesAreCalled) {
  const nlohmann::ordered_json metrics = {{"sources", {{{"name", "caf\xe9 \"\n"}, {"documents", 1}}}},
                                          {"similarity", {{"\xff", 0.5}}}};
  const std::string text = metrics_text(nullptr, metrics, nullptr, {}, 0);
  EXPECT_THAT(text, testing::HasSubstr("{source=\"caf\xEF\xBF\xBD \\\"\\n\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("{set=\"\xEF\xBF\xBD\"} 0.5\n"));
}

}  // namespace
}  // namespace streamvec
