#include "streamvec/model/spelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace streamvec {
namespace {

using ::testing::ElementsAre;

Spelling spelled(const CharacterTable& table, std::string_view word) {
  Spelling out{99};
  table.spell(word, out);
  return out;
}

CharacterId byte(unsigned char value) {
  return static_cast<CharacterId>(CharacterTable::kFirstByte + value);
}

CharacterTable knowing(std::string_view word, CharacterTable::Options options = {}) {
  CharacterTable table(options);
  table.admit(word);
  return table;
}

TEST(CharacterTable, NumbersCharactersInTheOrderTheyAreAdmitted) {
  CharacterTable table = knowing("naïve");
  EXPECT_EQ(table.size(), 263);
  table.admit("van");
  EXPECT_EQ(table.size(), 263);
  EXPECT_THAT(spelled(table, "van"), ElementsAre(0, 261, 259, 258, 1));
  EXPECT_THAT(table.admitted(), ElementsAre(U'n', U'a', U'ï', U'v', U'e'));
}

TEST(CharacterTable, SpellsHangulAsJamo) {
  const CharacterTable table = knowing("한하");  // ᄒ ᅡ ᆫ, ᄒ ᅡ
  EXPECT_THAT(table.admitted(), ElementsAre(U'\x1112', U'\x1161', U'\x11AB'));
  EXPECT_THAT(spelled(table, "하한"), ElementsAre(0, 258, 259, 258, 259, 260, 1));
  EXPECT_THAT(knowing("힣가").admitted(), ElementsAre(U'\x1112', U'\x1175', U'\x11C2', U'\x1100', U'\x1161'));
}

TEST(CharacterTable, SpellsByBytesWhatHasNoRow) {
  const CharacterTable table = knowing("a");
  EXPECT_THAT(spelled(table, "aé"), ElementsAre(0, 258, byte(0xC3), byte(0xA9), 1));
  EXPECT_THAT(spelled(table, "\xFF\xC3"), ElementsAre(0, byte(0xFF), byte(0xC3), 1));
  EXPECT_THAT(spelled(table, std::string_view("\0", 1)), ElementsAre(0, byte(0), 1));
  // A jamo by its own bytes, not by its syllable's: U+1100 U+1161.
  EXPECT_THAT(spelled(table, "가"),
              ElementsAre(0, byte(0xE1), byte(0x84), byte(0x80), byte(0xE1), byte(0x85), byte(0xA1), 1));
}

TEST(CharacterTable, NeverGivesARowToWhatIsNoCharacter) {
  // Not UTF-8; unassigned U+0378; private U+E000; a surrogate.
  const CharacterTable table = knowing("\xFF\xCD\xB8\xEE\x80\x80\xED\xA0\x80");
  EXPECT_EQ(table.size(), CharacterTable::kFixed);
  EXPECT_EQ(spelled(table, "\xCD\xB8").size(), 4u);
}

TEST(CharacterTable, IsFullAtSizeMax) {
  CharacterTable table = knowing("abc", {.size_max = CharacterTable::kFixed + 2});
  EXPECT_EQ(table.size(), CharacterTable::kFixed + 2);
  EXPECT_THAT(spelled(table, "cab"), ElementsAre(0, byte('c'), 258, 259, 1));
}

TEST(CharacterTable, TheEmptyStringIsItsMarks) {
  EXPECT_THAT(spelled(knowing(""), ""), ElementsAre(0, 1));
  EXPECT_THAT(spelled(knowing("", {.begin_mark = false, .end_mark = false}), ""), ElementsAre());
}

TEST(CharacterTable, MarksCanBeLeftOut) {
  EXPECT_THAT(spelled(knowing("ab", {.begin_mark = false}), "ab"), ElementsAre(258, 259, 1));
  EXPECT_THAT(spelled(knowing("ab", {.end_mark = false}), "ab"), ElementsAre(0, 258, 259));
}

TEST(CharacterTable, ALongWordLosesItsMiddle) {
  const CharacterTable table = knowing("abc", {.length_max = 7});
  EXPECT_THAT(spelled(table, "aabcc"), ElementsAre(0, 258, 258, 259, 260, 260, 1));
  EXPECT_THAT(spelled(table, "ab" + std::string(1'000'000, 'b') + "cc"), ElementsAre(0, 258, 259, 259, 260, 260, 1));
}

TEST(AppendCharacters, GivesCodePointsJamoAndBytes) {
  std::u32string characters = U"<";
  append_characters("aï한가\xff", characters);
  EXPECT_EQ(characters, std::u32string({U'<', U'a', 0xEF, 0x1112, 0x1161, 0x11AB, 0x1100, 0x1161, 0x1100FF}));
}

TEST(CharacterTable, RestoresWhatWasAdmitted) {
  const CharacterTable before = knowing("naïve 한");
  CharacterTable after = knowing("xyz");
  ASSERT_TRUE(after.restore(before.admitted()).ok());
  for (const char* word : {"naïve", "한나", "xe"}) EXPECT_EQ(spelled(after, word), spelled(before, word)) << word;
}

TEST(CharacterTable, RefusesAStoredTableThatCannotBe) {
  CharacterTable table = knowing("xyz", {.size_max = CharacterTable::kFixed + 3});
  const std::vector<std::vector<char32_t>> bad{{U'a', U'a'}, {0xD800}, {0x110000}, {0x378}, {U'a', U'b', U'c', U'd'}};
  for (const auto& characters : bad) EXPECT_EQ(table.restore(characters).code(), Code::kDataLoss);
  EXPECT_THAT(spelled(table, "zx"), ElementsAre(0, 260, 258, 1));
}

}  // namespace
}  // namespace streamvec
