#include "streamvec/source/piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace streamvec {
namespace {

using ::testing::HasSubstr;

std::string run(size_t size) {
  return std::string(size, 'x');
}

TEST(Piece, IsCutAfterTheLastLineEndOfItsSecondHalf) {
  const std::string text = run(40'000) + "\n" + run(100) + " " + run(60'000);
  EXPECT_EQ(piece_bytes(text), 40'001U);
}

TEST(Piece, IsCutBetweenWordsWhenNoLineEndIsNear) {
  const std::string text = run(100) + "\n" + run(60'000) + "\t" + run(60'000);
  EXPECT_EQ(piece_bytes(text), 60'102U);
}

TEST(Piece, OfARunWithoutSpaceIsCutAtTheBound) {
  EXPECT_EQ(piece_bytes(run(kPieceBytes + 1)), kPieceBytes);
}

TEST(Piece, NeverEndsInsideACharacter) {
  for (const std::string character : {"é", "한", "😀"})
    for (size_t shift = 0; shift < 4; ++shift) {
      std::string text = run(shift);
      while (text.size() <= kPieceBytes + 4) text += character;
      const size_t size = piece_bytes(text);
      EXPECT_EQ((size - shift) % character.size(), 0U) << character << shift;
      EXPECT_GT(size, kPieceBytes - 4);
      EXPECT_LE(size, kPieceBytes);
    }
}

TEST(Piece, OfBytesThatAreNoUtf8IsCutAtTheBound) {
  EXPECT_EQ(piece_bytes(std::string(kPieceBytes + 10, '\x80')), kPieceBytes);
}

TEST(LineBytes, EndWithTheLastLineEnd) {
  EXPECT_EQ(line_bytes("one\ntwo\nthr"), 8U);
  EXPECT_EQ(line_bytes("one"), 0U);
}

TEST(CheckText, AcceptsTextOfAnyScript) {
  for (const char* text :
       {"", "plain\n", "서울은 대한민국의 수도이다.\n", "\x1b[31mred\x1b[0m\n", "caf\xe9 in latin-1\n"})
    EXPECT_TRUE(check_text(text, "a.txt").ok()) << text;
}

TEST(CheckText, AStrayNulDoesNotMatter) {
  std::string text = "some words and then a NUL: ";
  text += '\0';
  EXPECT_TRUE(check_text(text, "a.txt").ok());
}

TEST(CheckText, RefusesBinaryContentByName) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  for (const std::string& content : {all_bytes, std::string(100, '\0'), std::string("\1\2\3", 3)}) {
    const Status status = check_text(content, "a.bin");
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("a.bin is not text"));
  }
}

TEST(CheckText, NamesTheFormatAndWhatToTry) {
  std::string tar(1'024, 'a');
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(check_text(tar, "x").message(), HasSubstr("tar archive"));
  EXPECT_THAT(check_text("PK\x03\x04 and so on", "x").message(), HasSubstr("zip"));
  EXPECT_THAT(check_text("%PDF-1.7\n", "x").message(), HasSubstr("pdftotext"));
}

TEST(CheckText, NamesUtf16WithAndWithoutItsMark) {
  std::string text;
  for (const char letter : std::string("hello in sixteen bits")) text += {letter, '\0'};
  EXPECT_THAT(check_text(text, "x").message(), HasSubstr("iconv -f UTF-16LE"));
  EXPECT_THAT(check_text("\xff\xfe" + text, "x").message(), HasSubstr("iconv -f UTF-16LE"));
  EXPECT_THAT(check_text("\xfe\xff" + text.substr(1), "x").message(), HasSubstr("iconv -f UTF-16BE"));
  EXPECT_THAT(check_text('\0' + text, "x").message(), HasSubstr("iconv -f UTF-16BE"));
}

TEST(Utf8Mark, IsThreeBytesLong) {
  EXPECT_EQ(utf8_mark_bytes("\xef\xbb\xbftext"), 3U);
  EXPECT_EQ(utf8_mark_bytes("text"), 0U);
}

}  // namespace
}  // namespace streamvec
