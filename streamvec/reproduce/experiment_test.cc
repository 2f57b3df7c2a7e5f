#include "streamvec/reproduce/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "streamvec/reproduce/experiment_page.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> names(const ExperimentOptions& options) {
  std::set<std::string> found;
  for (const RowPlan& plan : plan_rows(options)) found.insert(plan.name());
  return found;
}

TEST(Experiment, HasARowForEveryFigureOf2018) {
  ExperimentOptions options;
  options.as_published = true;
  int figures = 0;
  for (const RowPlan& plan : plan_rows(options)) figures += plan.arm == Arm::kPublished && figures_2018(plan);
  EXPECT_EQ(figures, 14);
}

TEST(Experiment, FaultyRowsRunOnlyWhenAskedFor) {
  for (const std::string& name : names({})) EXPECT_THAT(name, Not(HasSubstr("published")));
}

TEST(Experiment, NamesOfRowsDiffer) {
  ExperimentOptions options;
  options.as_published = true;
  EXPECT_EQ(names(options).size(), plan_rows(options).size());
}

TEST(Experiment, OnlyChoosesByName) {
  ExperimentOptions options;
  options.as_published = true;
  options.only = "sound-sgns-200-8192-sync";
  EXPECT_THAT(names(options), ElementsAre("sound-sgns-200-8192-sync"));
  options.only = "no such row";
  EXPECT_TRUE(plan_rows(options).empty());
}

TEST(Experiment, QuickHasEverySetting) {
  ExperimentOptions options;
  options.as_published = options.quick = true;
  const std::set<std::string> found = names(options);
  for (const char* setting : {"one", "several", "sync", "async"})
    for (const char* arm : {"published", "sound"})
      EXPECT_EQ(found.count(std::string(arm) + "-sgns-50-1024-" + setting), 1u) << arm << setting;
  EXPECT_LE(found.size(), 14u);
}

TEST(Experiment, RowsAreMeasuredAtPowersOfTwoAndTheEnd) {
  EXPECT_THAT(measured_epochs(1), ElementsAre(1));
  EXPECT_THAT(measured_epochs(2), ElementsAre(1, 2));
  EXPECT_THAT(measured_epochs(12), ElementsAre(1, 2, 4, 8, 12));
}

TEST(TrainCommand, OfAClusterLaunchesNodes) {
  ExperimentOptions options;
  options.nodes = 3;
  const std::string command =
      shell_text(train_command({Arm::kSound, "sgns", Setting::kAsync, 200, 8192}, options, 4, "my texts", "m"));
  EXPECT_EQ(
      command,
      "launch -n 3 --pin -- train 'my texts' --out m --dim 200 --epochs 4 --threads 1 --seed 1 --json --batch 1365 "
      "--sync async --sync-words 1000");
}

TEST(TrainCommand, AsksForTheCardWhereTheRowFitsIt) {
  ExperimentOptions options;
  options.device = "cuda";
  const auto asks = [&](const RowPlan& plan) {
    return shell_text(train_command(plan, options, 1, "text", "m")).find("--device cuda") != std::string::npos;
  };
  EXPECT_TRUE(asks({Arm::kSound, "rbsg", Setting::kOne, 200, 8192}));
  EXPECT_TRUE(asks({Arm::kSound, "sgns", Setting::kOne, 200, 0}));
  EXPECT_FALSE(asks({Arm::kSound, "sgns", Setting::kOne, 200, 8192}));
  EXPECT_FALSE(asks({Arm::kSound, "sgns", Setting::kSync, 200, 0}));
}

TEST(TrainCommand, AsPublishedHasTheOptimiserAndRateOf2018) {
  const auto text = [](Arm arm) {
    return shell_text(train_command({arm, "rbsg", Setting::kOne, 200, 1024}, {}, 1, "text", "m"));
  };
  EXPECT_THAT(text(Arm::kPublished), HasSubstr("--optimizer adam --lr 1e-4 --schedule constant"));
  EXPECT_THAT(text(Arm::kSound), Not(HasSubstr("--optimizer")));
}

TEST(ShellText, QuotesWhatAShellWouldReadOtherwise) {
  EXPECT_EQ(shell_text({"a-b/c", "", "it's", "$x"}), "a-b/c '' 'it'\\''s' '$x'");
}

ExperimentReport report() {
  ExperimentReport report;
  report.facts = {{"machine", "a <fast> one"}};
  RowResult good;
  good.plan = {Arm::kPublished, "sgns", Setting::kSync, 200, 8192};
  good.command = "streamvec a && b";
  good.points = {{1, {.relative = 0.9, .mean_square = 200}, 5}, {2, {.relative = 0.8, .mean_square = 201}, 4}};
  good.pairs = 1e6;
  good.pairs_per_s = 1e5;
  good.wire_bytes_per_pair = 3'000;
  RowResult bad;
  bad.plan = {Arm::kSound, "sgns", Setting::kAsync, 200, 8192};
  bad.failure = "node 2 was ended by <Killed>";
  report.rows = {good, bad};
  report.references = {{200, {{"zero", {.relative = 1, .mean_square = 0.09}}}}};
  return report;
}

TEST(ExperimentPage, HoldsOursBesideThoseOf2018) {
  const std::string html = page_of(report());
  for (const char* text : {"193.6", "63,441", "33.5", "100,000", "a &lt;fast&gt; one", "streamvec a &amp;&amp; b",
                           "node 2 was ended by &lt;Killed&gt;", "did not converge"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(ExperimentPage, ARowThatFailedLateKeepsItsFigures) {
  ExperimentReport late = report();
  late.rows[0].failure = "node 3 fell silent";
  EXPECT_THAT(page_of(late), HasSubstr("<td class=\"bad\">2, then node 3 fell silent</td>"));
  EXPECT_THAT(page_of(late), HasSubstr("<td class=\"bad\">200</td>"));
  const auto row = to_json(late)["rows"][0];
  EXPECT_EQ(row["failure"], "node 3 fell silent");
  EXPECT_EQ(row["epochs"], 2);
  EXPECT_EQ(row["pip"]["best_mean_square"], 200);
}

TEST(ExperimentPage, MarksWhatIsWorseThanZeros) {
  EXPECT_THAT(page_of(report()), HasSubstr("<td class=\"bad\">200</td>"));
}

TEST(ExperimentPage, WithoutRowsIsStillAPage) {
  EXPECT_THAT(page_of({}), HasSubstr("nothing was measured"));
}

TEST(ExperimentJson, HasTheSameRows) {
  const auto json = to_json(report());
  ASSERT_EQ(json["rows"].size(), 2u);
  const auto& good = json["rows"][0];
  EXPECT_EQ(good["name"], "published-sgns-200-8192-sync");
  EXPECT_EQ(good["published"]["pip"], 193.6);
  EXPECT_EQ(good["pip"]["best_mean_square"], 200);
  EXPECT_EQ(good["pip"]["mean_square"], 201);
  EXPECT_NEAR(good["seconds_per_epoch"].get<double>(), 33.49, 1e-9);
  EXPECT_EQ(good["points"].size(), 2u);
  EXPECT_TRUE(good["failure"].is_null());
  EXPECT_EQ(json["rows"][1]["failure"], "node 2 was ended by <Killed>");
  EXPECT_TRUE(json["rows"][1]["pip"].is_null());
  EXPECT_EQ(json["references"]["200"]["zero"]["mean_square"], 0.09);
}

TEST(ExperimentJson, WhatIsNoNumberIsNull) {
  ExperimentReport odd = report();
  odd.rows[0].points.back().loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(to_json(odd)["rows"][0]["loss"].is_null());
  RowResult diverged = odd.rows[0];
  diverged.plan.setting = Setting::kAsync;  // of which 2018 reported no PIP
  odd.rows = {diverged};
  EXPECT_TRUE(to_json(odd)["rows"][0]["published"]["pip"].is_null());
}

}  // namespace
}  // namespace streamvec
