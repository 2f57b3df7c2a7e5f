#include "streamvec/eval/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace streamvec {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The records of a file, read by the lengths alone.
std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    records.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
    EXPECT_LE(at, bytes.size());
  }
  return records;
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TfRecord, StandsBetweenItsLengthAndMaskedSums) {
  // "foo" as other writers of TFRecord have it.
  const std::string record = tf_record("foo");
  ASSERT_EQ(record.size(), 19u);
  EXPECT_EQ(record.substr(0, 8), bytes_of({3, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(record.substr(12, 3), "foo");
  const auto unmasked = [&](size_t at) {
    uint32_t masked = 0;
    std::memcpy(&masked, record.data() + at, 4);
    const uint32_t turned = masked - 0xa282ead8u;
    return turned >> 17 | turned << 15;
  };
  EXPECT_EQ(unmasked(8), crc32c(record.substr(0, 8)));
  EXPECT_EQ(unmasked(15), crc32c("foo"));
}

TEST(ScalarEvent, IsTheProtobufMessageByteForByte) {
  const Scalar scalars[] = {{"a/b", 0.5}};
  EXPECT_EQ(scalar_event(1.0, 300, scalars), bytes_of({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}) +  // wall_time = 1.0
                                                 bytes_of({0x10, 0xac, 0x02}) +                // step = 300
                                                 bytes_of({0x2a, 12, 0x0a, 10, 0x0a, 3}) +
                                                 "a/b" +                            // summary { value { tag
                                                 bytes_of({0x15, 0, 0, 0, 0x3f}));  // simple_value = 0.5
}

TEST(ScalarEvent, LeavesOutWhatIsNotFiniteAndMendsTagsThatAreNotUtf8) {
  const Scalar scalars[] = {{"nan", std::numeric_limits<double>::quiet_NaN()}, {"caf\xc3\xa9", 1}, {"x\xff\x41", 2}};
  const std::string event = scalar_event(1, 1, scalars);
  EXPECT_THAT(event, Not(HasSubstr("nan")));
  EXPECT_THAT(event, HasSubstr("caf\xc3\xa9"));
  EXPECT_THAT(event, HasSubstr("x?A"));
}

class EventFileTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "events." + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> paths(fs::directory_iterator(dir_), {});
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  std::string dir_;
};

TEST_F(EventFileTest, BeginsWithTheVersionAndHoldsARecordAWrite) {
  EventFile file = EventFile::open(dir_).value();
  const Scalar scalars[] = {{"loss", 2}};
  ASSERT_TRUE(file.write(1'700'000'000.5, 1, scalars).ok());
  ASSERT_TRUE(file.write(1'700'000'001.5, 2, scalars).ok());
  ASSERT_THAT(files(), SizeIs(1));
  EXPECT_THAT(files()[0].filename().string(), testing::StartsWith("events.out.tfevents.1700000000.streamvec."));
  const std::vector<std::string> records = records_of(read(files()[0]));
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(records[0], HasSubstr("brain.Event:2"));
  EXPECT_EQ(records[2], scalar_event(1'700'000'001.5, 2, scalars));
}

TEST_F(EventFileTest, GoesOnInANewFileAndDropsTheOldestOfItsOwn) {
  fs::create_directory(dir_);
  std::ofstream(dir_ + "/events.out.tfevents.1.other-program") << "keep";
  EventFile file = EventFile::open(dir_, {.bytes_max = 100, .files_max = 2}).value();
  const Scalar scalars[] = {{"loss", 2}};
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(file.write(1'700'000'000 + i, i, scalars).ok());
  ASSERT_THAT(files(), SizeIs(3));
  EXPECT_EQ(read(files()[0]), "keep");
  EXPECT_THAT(records_of(read(files()[2]))[0], HasSubstr("brain.Event:2"));
}

}  // namespace
}  // namespace streamvec
