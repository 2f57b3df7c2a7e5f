#include "apps/streamvec/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "apps/streamvec/help.h"
#include "apps/streamvec/progress.h"
#include "apps/streamvec/suggest.h"
#include "streamvec/train/trainer.h"

namespace streamvec::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Arguments> parse_as(const char* command, std::vector<std::string> args) {
  return parse(*find_command(command), args);
}

Result<Arguments> parse_train(std::vector<std::string> args) {
  args.insert(args.begin(), {"text", "--out", "m"});
  return parse_as("train", args);
}

// What was understood; a test fails, and goes on with nothing, when it was refused.
Arguments understood(const Result<Arguments>& parsed) {
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? *parsed : Arguments();
}

std::string train_message(std::vector<std::string> args) {
  const auto parsed = parse_train(std::move(args));
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
  return parsed.status().message();
}

// A config file that goes away with the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "options_test_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
              ".toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Options, BothWaysToGiveAValueMeanTheSame) {
  EXPECT_EQ(understood(parse_train({"--dim", "64"})).integer("dim"), 64);
  EXPECT_EQ(understood(parse_train({"--dim=64"})).integer("dim"), 64);
  EXPECT_EQ(understood(parse_as("nearest", {"m", "king", "-k", "3"})).integer("k"), 3);
  EXPECT_EQ(understood(parse_as("nearest", {"m", "king", "-k3"})).integer("k"), 3);
  EXPECT_EQ(understood(parse_as("nearest", {"m", "king", "-k=3"})).integer("k"), 3);
}

TEST(Options, WordsMayStandBetweenFlags) {
  EXPECT_THAT(understood(parse_as("nearest", {"m", "-k", "3", "king", "queen"})).words,
              ElementsAre("m", "king", "queen"));
}

TEST(Options, ADashIsAWordAndTwoDashesEndTheFlags) {
  EXPECT_THAT(understood(parse_as("train", {"-", "--out", "m", "--", "--dim"})).words, ElementsAre("-", "--dim"));
}

TEST(Options, ANegativeNumberIsAWord) {
  EXPECT_THAT(understood(parse_as("vector", {"m", "-1"})).words, ElementsAre("m", "-1"));
}

TEST(Options, OfAFlagGivenTwiceTheLastCounts) {
  EXPECT_EQ(understood(parse_train({"--dim", "1", "--dim", "2"})).integer("dim"), 2);
}

TEST(Options, RepeatedOptionsKeepEveryValue) {
  EXPECT_THAT(understood(parse_as("eval", {"m", "--similarity", "a", "--similarity=b"})).list("similarity"),
              ElementsAre("a", "b"));
}

TEST(Options, AFlagCanBeTakenBack) {
  EXPECT_TRUE(understood(parse_train({"--keep-case"})).flag("keep-case"));
  EXPECT_FALSE(understood(parse_train({"--keep-case", "--keep-case=false"})).flag("keep-case"));
}

TEST(Options, AnUnknownFlagIsNamedWithTheNearest) {
  EXPECT_THAT(train_message({"--dmi", "3"}), AllOf(HasSubstr("--dmi"), HasSubstr("--dim?")));
  EXPECT_THAT(train_message({"--checkpoint=3"}), AllOf(HasSubstr("--checkpoint;"), HasSubstr("--checkpoint-every?")));
  EXPECT_THAT(train_message({"--stop=3"}), HasSubstr("--stop-words?"));
  EXPECT_THAT(train_message({"-dim", "3"}), AllOf(HasSubstr("-dim"), HasSubstr("--dim?")));
  EXPECT_THAT(train_message({"--minCount", "3"}), HasSubstr("--min-count?"));
  EXPECT_THAT(train_message({"--vector_size", "3"}), HasSubstr("--dim?"));
}

TEST(Options, AFlagOfAnotherCommandIsSentThere) {
  EXPECT_THAT(parse_as("eval", {"m", "--dim", "3"}).status().message(), HasSubstr("train simulate has it"));
}

TEST(Options, NumbersOutOfRangeAreRefusedWithTheRange) {
  EXPECT_THAT(train_message({"--dim", "0"}), AllOf(HasSubstr("--dim 0"), HasSubstr("1 to 65536")));
  EXPECT_THAT(train_message({"--sample", "-0.5"}), AllOf(HasSubstr("--sample -0.5"), HasSubstr("0 to 1")));
  EXPECT_THAT(train_message({"--dim", "99999999999999999999"}), HasSubstr("out of range"));
  EXPECT_THAT(train_message({"--seed", "9000000000000001"}), HasSubstr("0 to 9000000000000000"));
  EXPECT_THAT(train_message({"--lr", "1e999"}), HasSubstr("--lr 1e999"));
}

TEST(Options, NumbersWithGarbageAreRefused) {
  for (const char* bad : {"2x", "0x10", "", " 2", "2 ", "1e3", "2.0", "nan", "--", "0b1"})
    EXPECT_THAT(train_message({std::string("--dim=") + bad}), HasSubstr("--dim")) << bad;
  for (const char* bad : {"nan", "inf", "1,5", "2e-3x", "e", "."})
    EXPECT_THAT(train_message({"--sample", bad}), HasSubstr("not a number")) << bad;
}

TEST(Options, ScientificNumbersAreRead) {
  EXPECT_DOUBLE_EQ(understood(parse_train({"--sample", "2e-3"})).real("sample"), 0.002);
}

TEST(Options, AnUnknownChoiceIsRefusedWithTheList) {
  EXPECT_THAT(train_message({"--model", "elmo"}), AllOf(HasSubstr("--model elmo"), HasSubstr("sgns|cbow")));
  EXPECT_THAT(train_message({"--model", "sgns|cbow"}), HasSubstr("not one of"));
}

TEST(Options, ATextThatHasAFormIsRefusedInAnother) {
  EXPECT_THAT(train_message({"--half-life", "soon"}), AllOf(HasSubstr("--half-life soon"), HasSubstr("12h")));
  EXPECT_THAT(train_message({"--listen", "here"}), AllOf(HasSubstr("--listen here"), HasSubstr("host:port")));
  EXPECT_THAT(train_message({"--address", "h:99999"}), HasSubstr("host:port"));
  EXPECT_THAT(train_message({"--stem", "klingon"}), HasSubstr("known are"));
  EXPECT_TRUE(parse_train({"--half-life", "12h", "--listen", "[::1]:0", "--stem", "en"}).ok());
}

TEST(Options, AMissingValueIsNamed) {
  EXPECT_THAT(train_message({"--dim"}), HasSubstr("--dim needs a value"));
  EXPECT_THAT(train_message({"--stem", "--json"}), HasSubstr("--stem needs a value"));
}

TEST(Options, MissingAndSurplusArgumentsShowTheUsage) {
  EXPECT_THAT(parse_as("train", {"--out", "m"}).status().message(), HasSubstr("train SOURCE... --out DIR"));
  EXPECT_THAT(parse_as("train", {"text"}).status().message(), HasSubstr("needs --out DIR"));
  EXPECT_THAT(parse_as("eval", {"m", "n"}).status().message(), HasSubstr("unexpected argument n"));
}

TEST(Options, DefaultsAreThoseOfTheTrainer) {
  const auto parsed = parse_train({});
  ASSERT_TRUE(parsed.ok());
  const TrainOptions trainer;
  EXPECT_EQ(parsed->given("model"), trainer.model.has_value());
  EXPECT_EQ(parsed->given("dim"), trainer.dim.has_value());
  EXPECT_EQ(parsed->integer("window"), trainer.window);
  EXPECT_EQ(parsed->integer("negatives"), trainer.negatives);
  EXPECT_EQ(parsed->real("sample"), trainer.sample);
  EXPECT_EQ(parsed->integer("min-count"), trainer.min_count);
  EXPECT_EQ(parsed->given("epochs"), trainer.epochs != 0);
  EXPECT_EQ(parsed->real("x-max"), trainer.glove.x_max);
  EXPECT_EQ(parsed->real("alpha"), trainer.glove.alpha);
  EXPECT_EQ(parsed->integer("memory"), trainer.glove.memory_mb);
  EXPECT_EQ(parsed->integer("threads"), trainer.threads);
  EXPECT_EQ(parsed->given("lr"), trainer.lr.has_value());
  EXPECT_EQ(parsed->text("schedule"), trainer.schedule);
  EXPECT_EQ(parsed->text("optimizer"), trainer.optimizer);
  EXPECT_EQ(parsed->text("kernel"), trainer.kernel);
  EXPECT_EQ(parsed->text("table"), trainer.table);
  EXPECT_EQ(parsed->given("products"), trainer.products.has_value());
  EXPECT_EQ(parsed->integer("batch"), trainer.batch);
  EXPECT_EQ(parsed->integer("vocab-max"), trainer.vocab_max);
  EXPECT_EQ(parsed->integer("seed"), static_cast<int64_t>(trainer.seed));
  EXPECT_EQ(parsed->given("checkpoint-every"), trainer.checkpoint_every_s.has_value());
  EXPECT_EQ(parsed->flag("stream"), trainer.stream.on);
  EXPECT_EQ(HalfLife::parse(parsed->text("half-life"))->value, trainer.stream.half_life.value);
  EXPECT_EQ(parsed->text("replay"), trainer.stream.replay);
  EXPECT_EQ(parsed->real("replay-ratio"), trainer.stream.replay_ratio);
  EXPECT_EQ(parsed->integer("replay-chunks"), trainer.stream.replay_chunks);
  EXPECT_EQ(parsed->real("evaluate-every"), trainer.stream.evaluate_every_s);
  EXPECT_EQ(parsed->integer("snapshot-every"), trainer.stream.snapshot_every);
  EXPECT_EQ(!parsed->flag("no-drift"), trainer.stream.drift);
}

TEST(Config, HasTheSameNamesAndFlagsWin) {
  const ConfigFile file("dim = 64\nsample = 1e-4\nmodel = \"cbow\"\nkeep-case = true\n");
  const auto parsed = parse_train({"--config", file.path(), "--dim", "32"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->integer("dim"), 32);
  EXPECT_DOUBLE_EQ(parsed->real("sample"), 1e-4);
  EXPECT_EQ(parsed->text("model"), "cbow");
  EXPECT_TRUE(parsed->flag("keep-case"));
}

TEST(Config, CanHoldWhatACommandRequires) {
  const ConfigFile file("out = \"m\"\n");
  EXPECT_EQ(understood(parse_as("train", {"text", "--config", file.path()})).text("out"), "m");
}

TEST(Config, ListsAreForRepeatedOptions) {
  const ConfigFile file("similarity = [\"a\", \"b\"]\n");
  EXPECT_THAT(understood(parse_as("eval", {"m", "--config", file.path()})).list("similarity"), ElementsAre("a", "b"));
  const ConfigFile bad("dim = [1, 2]\n");
  EXPECT_THAT(train_message({"--config", bad.path()}), HasSubstr("not a list"));
}

TEST(Config, AnUnknownKeyIsNamedWithFileLineAndTheNearest) {
  const ConfigFile file("dim = 3\nwindwo = 3\n");
  EXPECT_THAT(train_message({"--config", file.path()}),
              AllOf(HasSubstr(file.path() + ":2"), HasSubstr("windwo"), HasSubstr("window?")));
}

TEST(Config, KeysOfOtherCommandsAreCheckedAndLeftOut) {
  const ConfigFile file("analogy-vocab = 100\n");
  EXPECT_FALSE(understood(parse_train({"--config", file.path()})).given("analogy-vocab"));
  const ConfigFile bad("analogy-vocab = \"many\"\n");
  EXPECT_THAT(train_message({"--config", bad.path()}), HasSubstr("analogy-vocab = many"));
}

TEST(Config, BadValuesAndTablesAreRefusedWithTheLine) {
  const ConfigFile range("\ndim = 0\n");
  EXPECT_THAT(train_message({"--config", range.path()}), AllOf(HasSubstr(":2: dim = 0"), HasSubstr("1 to 65536")));
  const ConfigFile table("[dim]\na = 1\n");
  EXPECT_THAT(train_message({"--config", table.path()}), HasSubstr("dim"));
  const ConfigFile syntax("dim = \n");
  EXPECT_THAT(train_message({"--config", syntax.path()}), HasSubstr(":1:"));
}

TEST(Config, AFileThatIsNotThereIsAFailureNotMisuse) {
  const auto parsed = parse_train({"--config", "/nowhere/run.toml"});
  EXPECT_EQ(parsed.status().code(), Code::kNotFound);
  EXPECT_THAT(parsed.status().message(), HasSubstr("/nowhere/run.toml"));
}

TEST(Table, NamesAreUniqueWithinACommandAndDefaultsPassTheirOwnCheck) {
  for (const Option& a : options()) {
    for (const Command& command : commands())
      for (const Option& b : options())
        EXPECT_FALSE(&a != &b && a.name == b.name && belongs_to(a, command.name) && belongs_to(b, command.name))
            << a.name;
    if (!a.initial.empty()) {
      EXPECT_TRUE(check_value(a, a.initial, "").ok()) << a.name;
    }
  }
}

// Files, names and whatever else may be any text stand for themselves; all the rest has a form.
TEST(Table, EveryValueThatHasAFormRefusesASenselessOneAndSaysWhatIsAllowed) {
  const std::set<std::string_view> any_text = {"F",      "F.pem", "F.toml", "FILE",  "DIR",
                                               "REPORT", "NAME",  "HOST",   "ORIGIN"};
  for (const Option& option : options()) {
    const Status status = check_value(option, "!?", flag_of(option) + " !?");
    const bool has_form = option.kind != Kind::kText || (any_text.count(option.value) == 0 && option.name != "only");
    EXPECT_EQ(status.code(), has_form ? Code::kInvalidArgument : Code::kOk) << option.name << " " << option.value;
    EXPECT_THAT(status.message(), HasSubstr(has_form ? flag_of(option) + " !?" : ""));
  }
}

TEST(Table, ValuesOfOneNameHaveTheFormOfTheirCommand) {
  EXPECT_TRUE(parse_train({"--nodes", "a:1,[::1]:2"}).ok());
  EXPECT_TRUE(parse_as("simulate", {"--nodes", "4,16"}).ok());
  for (const char* bad : {"foo", "a:1,", ",a:1", "a:1,b", "4,16"})
    EXPECT_THAT(train_message({"--nodes", bad}), AllOf(HasSubstr("--nodes"), HasSubstr("host:port"))) << bad;
  for (const char* bad : {"foo", "4,", "0", "4097", "a:1", "4;5"})
    EXPECT_THAT(parse_as("simulate", {"--nodes", bad}).status().message(), HasSubstr("as in 4,16,64")) << bad;
  for (const char* bad : {"1", "Gbit", "1gbit", "-1Gbit", "infGbit", "nanMbit", "1Gbit,"})
    EXPECT_THAT(parse_as("simulate", {"--bandwidth", bad}).status().message(), HasSubstr("Mbit or Gbit")) << bad;
  const ConfigFile file("nodes = \"a:1,b:2\"\n");
  EXPECT_EQ(understood(parse_train({"--config", file.path()})).text("nodes"), "a:1,b:2");
  EXPECT_TRUE(parse_as("eval", {"model", "--config", file.path()}).ok()) << "it has no nodes of either kind";
  const ConfigFile counts("nodes = \"4,16\"\n");
  EXPECT_TRUE(parse_as("eval", {"model", "--config", counts.path()}).ok());
  EXPECT_FALSE(parse_train({"--config", counts.path()}).ok());
}

TEST(Table, EveryOptionBelongsToCommandsThatExist) {
  for (const Option& option : options()) {
    std::istringstream names{std::string(option.commands) + " " + std::string(option.required)};
    for (std::string name; names >> name;) EXPECT_NE(find_command(name), nullptr) << option.name << ": " << name;
  }
}

TEST(Help, NamesEveryOptionOfACommandWithItsDefault) {
  const std::string text = help_of(*find_command("train"));
  for (const Option& option : options()) {
    const std::string line = "\n  " + flag_of(option) + " " + std::string(option.value);
    EXPECT_EQ(text.find(line) != text.npos, belongs_to(option, "train")) << option.name;
  }
  EXPECT_THAT(text, HasSubstr("(default: 200)"));
}

TEST(Help, LinesFitIntoAHundredColumns) {
  for (const Command& command : commands()) {
    std::istringstream lines(help_of(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Suggest, CountsASwapAsOneEdit) {
  EXPECT_EQ(edit_distance("dmi", "dim"), 1);
  EXPECT_EQ(edit_distance("", "dim"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Suggest, AVeryLongNameIsAnsweredAtOnce) {
  EXPECT_EQ(nearest_name("train" + std::string(10'000'000, 'x'), command_names()), "train");
}

TEST(Progress, CountsAndDurationsAreShort) {
  EXPECT_EQ(short_count(950), "950");
  EXPECT_EQ(short_count(12345), "12.3k");
  EXPECT_EQ(short_count(1234567), "1.23M");
  EXPECT_EQ(short_count(999999), "1.00M");
  EXPECT_EQ(short_duration(65), "1:05");
  EXPECT_EQ(short_duration(7384), "2:03:04");
}

TEST(Progress, AFileGetsALineNowAndThen) {
  std::FILE* file = std::tmpfile();
  ProgressLine line(fileno(file), std::chrono::seconds(0));
  line.show("one");
  line.show("two");
  line.clear();
  std::rewind(file);
  char text[64] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof text - 1, file), 8u);
  EXPECT_STREQ(text, "one\ntwo\n");
  std::fclose(file);
}

}  // namespace
}  // namespace streamvec::cli
