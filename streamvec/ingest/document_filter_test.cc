#include "streamvec/ingest/document_filter.h"

#include <gtest/gtest.h>

namespace streamvec {
namespace {

const char* const kEnglish =
    "The council said on Monday that the bridge would stay closed until the repairs were finished, and asked drivers "
    "to use the road along the river instead.";
const char* const kGerman =
    "Der Stadtrat teilte am Montag mit, dass die Brücke bis zum Ende der Arbeiten gesperrt bleibt, und bat die Fahrer, "
    "die Straße am Fluss zu benutzen.";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

DocumentFilter make(DocumentFilter::Options options) {
  return std::move(DocumentFilter::create(options)).value();
}

TEST(DocumentFilter, LetsEverythingPassWithoutOptions) {
  DocumentFilter filter = make({});
  EXPECT_TRUE(filter.language_wanted(kGerman));
  EXPECT_FALSE(filter.seen_before(words_of(kEnglish)));
  EXPECT_FALSE(filter.seen_before(words_of(kEnglish)));
  EXPECT_EQ(filter.save(), "");
}

TEST(DocumentFilter, LetsOnlyTheWantedLanguagesPass) {
  const DocumentFilter filter = make({.languages = {"de"}});
  EXPECT_TRUE(filter.language_wanted(kGerman));
  EXPECT_FALSE(filter.language_wanted(kEnglish));
  EXPECT_EQ(DocumentFilter::create({.languages = {"klingon"}}).status().code(), Code::kInvalidArgument);
}

TEST(DocumentFilter, RemembersADocumentAcrossARestart) {
  DocumentFilter filter = make({.drop_duplicates = true});
  EXPECT_FALSE(filter.seen_before(words_of(kEnglish)));
  EXPECT_TRUE(filter.seen_before(words_of(kEnglish)));
  DocumentFilter again = make({.drop_duplicates = true});
  ASSERT_TRUE(again.restore(filter.save()).ok());
  EXPECT_TRUE(again.seen_before(words_of(kEnglish)));
  EXPECT_FALSE(again.seen_before(words_of(kGerman)));
}

TEST(DocumentFilter, GoesOnFromAnotherSettingAndRefusesDamage) {
  DocumentFilter with = make({.drop_duplicates = true}), without = make({});
  EXPECT_TRUE(with.restore("").ok());
  EXPECT_TRUE(without.restore(with.save()).ok());
  EXPECT_EQ(with.restore("damaged").code(), Code::kDataLoss);
}

}  // namespace
}  // namespace streamvec
