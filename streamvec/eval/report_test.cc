#include "streamvec/eval/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

TEST(EvalReport, HasEveryKeyOfTheContractInItsOrder) {
  EXPECT_EQ(to_json(EvalReport()).dump(), R"({"similarity":[],"analogy":[],"pip":null,"loss":null})");
}

TEST(EvalReport, WritesWhatWasMeasured) {
  EvalReport report;
  report.similarity = {{"WS", 0.5, 353, 350}};
  AnalogyResult& analogy = report.analogy.emplace_back();
  analogy.total = {"google", 4, 2, 1, 2};
  analogy.sections.push_back({"family", 4, 2, 1, 2});
  report.held_out = HeldOutLoss{2.5, 10, 4};
  const auto json = to_json(report);
  EXPECT_EQ(json["similarity"][0].dump(), R"({"set":"WS","spearman":0.5,"pairs":353,"covered":350})");
  EXPECT_EQ(json["analogy"][0].dump(),
            R"({"set":"google","accuracy":0.5,"questions":4,"covered":2,"cosmul_accuracy":1.0,)"
            R"("sections":[{"section":"family","accuracy":0.5,"questions":4,"covered":2,"cosmul_accuracy":1.0}]})");
  EXPECT_EQ(json["loss"], 2.5);
}

TEST(EvalReport, WritesPipWithItsReferences) {
  EvalReport report;
  PipReport measured;
  measured.model.relative = 0.25;
  measured.model.scale = 2;
  measured.model.relative_unscaled = 3;
  measured.model.mean_square = 0.5;
  measured.model.cka = 0.75;
  measured.model.neighbour_overlap = 0.125;
  measured.oracle_dim = 50;
  measured.references.emplace_back("zero", PipFigures{}).second.relative = 1;
  report.pip = measured;
  const auto pip = to_json(report)["pip"];
  EXPECT_EQ(pip["relative"], 0.25);
  EXPECT_EQ(pip["scale"], 2);
  EXPECT_EQ(pip["relative_unscaled"], 3);
  EXPECT_EQ(pip["mean_square"], 0.5);
  EXPECT_EQ(pip["oracle_dim"], 50);
  EXPECT_EQ(pip["cka"], 0.75);
  EXPECT_EQ(pip["neighbour_overlap"], 0.125);
  EXPECT_EQ(pip["references"]["zero"]["relative"], 1);
}

TEST(EvalReport, WritesTheChoiceOfDimension) {
  EvalReport report;
  report.choose_dim = DimChoice{2, 1, 3, 0.5, {3, 2, 1}, false};
  EXPECT_EQ(to_json(report)["choose_dim"].dump(),
            R"({"dim":2,"low":1,"high":3,"at_limit":false,"noise":0.5,"loss":[3.0,2.0,1.0]})");
}

TEST(EvalReport, NumbersThatAreNotDefinedAreNull) {
  EvalReport report;
  report.similarity = {{"WS", std::nan(""), 353, 1}};
  report.analogy = {{{"google", 4, 0, 0, 0}, {}}};
  const auto json = to_json(report);
  EXPECT_TRUE(json["similarity"][0]["spearman"].is_null());
  EXPECT_TRUE(json["analogy"][0]["accuracy"].is_null());
}

}  // namespace
}  // namespace streamvec
