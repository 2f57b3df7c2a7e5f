#include "apps/streamvec/demo_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "streamvec/core/random.h"

namespace streamvec::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr int64_t kDim = 96;

// Adds `scale` times the direction that belongs to `name` to a vector.
void add_direction(const std::string& name, float scale, float* row) {
  Random random(std::hash<std::string>()(name));
  for (int64_t i = 0; i < kDim; ++i) row[i] += scale * (random.uniform() - 0.5F);
}

// A model that has learned everything that was planted; `forget` gives words that got a direction of their own.
Snapshot planted_model(const std::set<std::string>& forget = {}, const Words& more_words = {}) {
  const newsroom::Truth& truth = newsroom::truth();
  std::map<std::string, Words> parts;  // what a word's vector is the sum of
  for (const auto& word_class : truth.classes)
    for (const std::string& word : word_class.words) parts[word] = {word_class.name};
  for (const auto& change : truth.changes) parts[change.word] = {change.class_after};
  for (const auto& coined : truth.coined)
    if (coined.used) parts[coined.word] = {coined.word_class};
  for (const auto& relation : truth.relations)
    for (const auto& [a, b] : relation.pairs) {
      parts[a] = {relation.name + " first", "pair of " + a};
      parts[b] = {relation.name + " second", "pair of " + a};
    }
  for (const std::string& word : more_words) parts[word] = {word};
  Snapshot snapshot;
  snapshot.input = Matrix::make(static_cast<int64_t>(parts.size()), kDim).value();
  for (const auto& [word, names] : parts) {
    float* row = snapshot.input.row(snapshot.vocabulary.add(word, 20));
    add_direction("noise of " + word, forget.contains(word) ? 10 : 0.3F, row);
    for (const std::string& name : names) add_direction(name, 1, row);
  }
  return snapshot;
}

DriftReport planted_drift() {
  DriftReport report;
  report.moved.push_back({.word = "tiger", .neighbours_old = {"wolf"}, .neighbours_new = {"wolf"}});
  for (const auto& change : newsroom::truth().changes) {
    const auto members = [&](const std::string& name) {
      for (const auto& word_class : newsroom::truth().classes)
        if (word_class.name == name) return Words(word_class.words.begin(), word_class.words.begin() + 7);
      return Words();
    };
    report.moved.push_back({.word = change.word,
                            .neighbours_old = members(change.class_before),
                            .neighbours_new = members(change.class_after)});
  }
  return report;
}

DemoReport report_on(const Snapshot& snapshot, const DriftReport& drift) {
  Result<DemoReport> report = report_on_demo(snapshot, drift, newsroom::truth());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(report).value();
}

// The only finding that is not as it should be; "" when there is none, or more.
std::string only_failure(const DemoReport& report) {
  std::string name;
  for (const Finding& finding : report.findings)
    if (!finding.found()) name += finding.name;
  return name;
}

TEST(DemoReport, AModelThatLearnedEverythingPasses) {
  const DemoReport report = report_on(planted_model(), planted_drift());
  EXPECT_TRUE(report.found()) << report.text;
  EXPECT_THAT(report.text, AllOf(HasSubstr("tiger: "), HasSubstr("france : paris = japan : ?"), HasSubstr("* jaguar"),
                                 HasSubstr("The planted truth was found."), Not(HasSubstr("TOO FEW"))));
  const Json json = report.json();
  EXPECT_EQ(json["found"], true);
  EXPECT_EQ(json["changes"]["right"], newsroom::truth().changes.size());
  EXPECT_GE(json["analogies"]["asked"], 1'000);
}

TEST(DemoReport, ClassesThatWereNotLearnedAreNoticedAndStrangersMarked) {
  std::set<std::string> forgotten;
  for (const auto& word_class : newsroom::truth().classes) forgotten.insert(word_class.words[0]);
  const DemoReport report = report_on(planted_model(forgotten), planted_drift());
  EXPECT_EQ(only_failure(report), "neighbours") << report.text;
  EXPECT_THAT(report.text, AllOf(HasSubstr(" !"), HasSubstr("TOO FEW"), HasSubstr("NOT found")));
}

TEST(DemoReport, AnalogiesThatFailAreNoticed) {
  std::set<std::string> forgotten;
  for (const auto& relation : newsroom::truth().relations)
    for (size_t i = 0; i < relation.pairs.size() / 2; ++i) forgotten.insert(relation.pairs[i].second);
  EXPECT_EQ(only_failure(report_on(planted_model(forgotten), planted_drift())), "analogies");
}

TEST(DemoReport, AChangeMustBeNearTheTopOfTheListAndLeadFromTheOldClassToTheNew) {
  DriftReport reversed = planted_drift(), late = planted_drift();
  std::swap(reversed.moved[1].neighbours_old, reversed.moved[1].neighbours_new);
  EXPECT_EQ(only_failure(report_on(planted_model(), reversed)), "changes");
  late.moved.insert(late.moved.begin() + 1, 8, late.moved[0]);
  EXPECT_EQ(only_failure(report_on(planted_model(), late)), "changes");
  EXPECT_EQ(only_failure(report_on(planted_model(), {})), "changes");
}

TEST(DemoReport, CoinedWordsAmongStrangersAreNoticed) {
  std::set<std::string> forgotten;
  for (const auto& coined : newsroom::truth().coined) forgotten.insert(coined.word);
  EXPECT_EQ(only_failure(report_on(planted_model(forgotten), planted_drift())), "coined");
}

TEST(DemoReport, AWordOfForbiddenPagesShowsThatRobotsWasIgnored) {
  EXPECT_EQ(only_failure(report_on(planted_model({}, {newsroom::kTrapWord}), planted_drift())), "robots");
}

TEST(DemoReport, MuchBoilerplateIsNoticed) {
  Snapshot snapshot = planted_model({}, {"cookies", "newsletter"});
  EXPECT_EQ(only_failure(report_on(snapshot, planted_drift())), "") << "a little is not";
  snapshot.vocabulary.add_count(snapshot.vocabulary.find("cookies"), snapshot.vocabulary.tokens() / 5);
  EXPECT_EQ(only_failure(report_on(snapshot, planted_drift())), "boilerplate");
}

TEST(DemoReport, WhatWasNotPlantedIsNotAsked) {
  const newsroom::Truth classes_only{newsroom::truth().classes, {}, {}, {}};
  const DemoReport report = report_on_demo(planted_model(), {}, classes_only).value();
  EXPECT_TRUE(report.found()) << report.text;
  EXPECT_FALSE(report.json().contains("changes"));
  EXPECT_FALSE(report.json().contains("analogies"));
}

}  // namespace
}  // namespace streamvec::cli
