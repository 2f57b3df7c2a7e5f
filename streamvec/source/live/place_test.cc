#include "streamvec/source/live/place.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

Place resumed(const Place& place) {
  int64_t bytes = 0;
  Result<Place> parsed = Place::parse(place.cursor(42), bytes);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(bytes, 42);
  parsed->connected();
  return *parsed;
}

RecordPlace numbered(int64_t number, uint64_t hash, std::string lane = "") {
  return {.token = std::to_string(number), .lane = std::move(lane), .number = number, .hash = hash};
}

TEST(Place, OfRecordsWithOneNumberOnlyThoseMetAreRepeats) {
  Place place;
  EXPECT_FALSE(place.repeated(numbered(5, 1)));
  EXPECT_FALSE(place.repeated(numbered(6, 2)));
  EXPECT_FALSE(place.repeated(numbered(6, 3)));
  Place after = resumed(place);
  EXPECT_EQ(after.number(), 6);
  EXPECT_EQ(after.token(), "6");
  EXPECT_TRUE(after.repeated(numbered(5, 1)));
  EXPECT_TRUE(after.repeated(numbered(6, 2)));
  EXPECT_FALSE(after.repeated(numbered(6, 4)));
  EXPECT_FALSE(after.repeated(numbered(7, 5)));
}

TEST(Place, OnceTheOverlapHasEndedALateRecordIsNew) {
  Place place;
  place.connected();
  EXPECT_FALSE(place.repeated(numbered(10, 1)));
  EXPECT_FALSE(place.repeated(numbered(12, 2)));
  EXPECT_FALSE(place.repeated(numbered(11, 3)));
  EXPECT_EQ(place.number(), 12);
}

TEST(Place, LanesAreNumberedForThemselves) {
  Place place;
  EXPECT_FALSE(place.repeated(numbered(100, 1, "a")));
  EXPECT_FALSE(place.repeated(numbered(3, 2, "b")));
  Place after = resumed(place);
  EXPECT_TRUE(after.repeated(numbered(3, 2, "b")));
  EXPECT_FALSE(after.repeated(numbered(4, 3, "b")));
  EXPECT_TRUE(after.repeated(numbered(100, 1, "a")));
  EXPECT_FALSE(after.repeated(numbered(1, 9, "c")));
}

TEST(Place, WithoutNumbersTheLastRecordsAreKnownAgainAfterAConnect) {
  Place place;
  for (uint64_t i = 0; i < 40; ++i) EXPECT_FALSE(place.repeated({.token = "id", .hash = i}));
  EXPECT_FALSE(place.repeated({.token = "id", .hash = 39})) << "no connect, no repeat";
  Place after = resumed(place);
  EXPECT_TRUE(after.repeated({.token = "id", .hash = 39}));
  EXPECT_FALSE(after.repeated({.token = "", .hash = 38})) << "a stream without ids repeats nothing";
  EXPECT_FALSE(after.repeated({.token = "id", .hash = 1})) << "too long ago";
}

TEST(Place, RefusesWhatIsNoCursorOfItsOwn) {
  int64_t bytes = 0;
  EXPECT_TRUE(Place::parse("", bytes).ok());
  for (const char* cursor : {"x", "{}", "[1]", "{\"bytes\":\"a\"}", "{\"bytes\":1,\"lanes\":{\"a\":1}}",
                             "{\"bytes\":1e300}", "{\"bytes\":1,\"recent\":[1e300]}", "{\"bytes\":1,\"recent\":7}"})
    EXPECT_EQ(Place::parse(cursor, bytes).status().code(), Code::kInvalidArgument) << cursor;
}

TEST(Place, ACursorWithTooManyHashesKeepsTheLastOnes) {
  std::string cursor = "{\"bytes\":1,\"recent\":[0";
  for (int hash = 1; hash < 100; ++hash) cursor += "," + std::to_string(hash);
  int64_t bytes = 0;
  Place place = Place::parse(cursor + "]}", bytes).value();
  place.connected();
  EXPECT_TRUE(place.repeated({.token = "id", .hash = 99}));
  EXPECT_FALSE(place.repeated({.token = "id", .hash = 1}));
}

}  // namespace
}  // namespace streamvec
