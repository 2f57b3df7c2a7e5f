#include "streamvec/source/document_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "streamvec/source/piece.h"

namespace streamvec {
namespace {

using ::testing::HasSubstr;

// Documents from a list, two at a time; where the list has "(wait)", none comes in time.
class ListReader : public DocumentReader {
 public:
  explicit ListReader(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  Result<int64_t> read(Deadline, std::vector<Document>& out) override {
    int64_t count = 0;
    for (; count < 2 && at_ < texts_.size(); ++count, ++at_) {
      if (texts_[at_] == "(wait)") {
        if (count > 0) return count;
        ++at_;
        return error(Code::kDeadlineExceeded, "nothing yet");
      }
      out.push_back({texts_[at_], ""});
    }
    return count;
  }
  Status rewind() override {
    at_ = 0;
    return {};
  }

 private:
  std::vector<std::string> texts_;
  size_t at_ = 0;
};

DocumentSource source_of(std::vector<std::string> texts, DocumentSource::Options options = DocumentSource::Options()) {
  return DocumentSource(std::make_unique<ListReader>(std::move(texts)), std::move(options));
}

DocumentSource replayable(std::vector<std::string> texts) {
  DocumentSource::Options options;
  options.replayable = true;
  return source_of(std::move(texts), options);
}

std::vector<Document> rest_of(Source& source) {
  std::vector<Document> documents;
  while (true) {
    const auto count = source.read(1, Deadline::never(), documents);
    EXPECT_TRUE(count.ok()) << count.status().message();
    if (!count.ok() || *count == 0) return documents;
  }
}

std::string text_of(const std::vector<Document>& documents) {
  std::string text;
  for (const Document& document : documents) text += document.text;
  return text;
}

// Enough text for several pieces, of many documents.
std::vector<std::string> many(const std::string& word = "word") {
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i) texts.push_back(word + std::to_string(i));
  return texts;
}

TEST(DocumentSource, ManyShortDocumentsShareAPieceEachALine) {
  DocumentSource source = source_of({"one", "two words", "three"});
  const std::vector<Document> documents = rest_of(source);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0].text, "one\ntwo words\nthree\n");
}

TEST(DocumentSource, LongTextIsCutIntoPieces) {
  DocumentSource source = source_of({std::string(3 * kPieceBytes, 'x'), "end"});
  const std::vector<Document> documents = rest_of(source);
  EXPECT_GT(documents.size(), 3u);
  for (const Document& document : documents) EXPECT_LE(document.text.size(), kPieceBytes);
  EXPECT_EQ(text_of(documents), std::string(3 * kPieceBytes, 'x') + "\nend\n");
}

TEST(DocumentSource, ApartEachDocumentKeepsItsNameAndTime) {
  class Named : public ListReader {
   public:
    Named() : ListReader({}) {}
    Result<int64_t> read(Deadline, std::vector<Document>& out) override {
      if (given_) return 0;
      given_ = true;
      out.push_back({"text", "", "id", 7});
      out.push_back({"", "", "gone", 0, true});
      return 2;
    }

   private:
    bool given_ = false;
  };
  DocumentSource::Options options;
  options.apart = true;
  DocumentSource source(std::make_unique<Named>(), options);
  const std::vector<Document> documents = rest_of(source);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].id, "id");
  EXPECT_EQ(documents[0].time_s, 7);
  EXPECT_TRUE(documents[1].deleted);
}

TEST(DocumentSource, SeekingAnyCursorGoesOnAfterIt) {
  DocumentSource source = replayable(many());
  const std::vector<Document> all = rest_of(source);
  ASSERT_GT(all.size(), 2u);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(source.seek(all[i].cursor).ok());
    const std::vector<Document> rest = rest_of(source);
    ASSERT_EQ(rest.size(), all.size() - i - 1);
    for (size_t j = 0; j < rest.size(); ++j) {
      EXPECT_EQ(rest[j].text, all[i + 1 + j].text);
      EXPECT_EQ(rest[j].cursor, all[i + 1 + j].cursor);
    }
  }
}

TEST(DocumentSource, OtherDocumentsAreNotTakenForTheRestOfThoseBefore) {
  DocumentSource source = replayable(many());
  const std::string cursor = rest_of(source).front().cursor;
  DocumentSource other = replayable(many("other"));
  EXPECT_EQ(other.seek(cursor).code(), Code::kFailedPrecondition);
  EXPECT_THAT(rest_of(other).front().text, HasSubstr("other0\n"));  // stands at the beginning
  DocumentSource shorter = replayable({"word0"});
  EXPECT_EQ(shorter.seek(cursor).code(), Code::kFailedPrecondition);
}

TEST(DocumentSource, BadCursorsAreRefused) {
  DocumentSource source = replayable({"text"});
  for (const char* cursor :
       {"x", "{}", "[1]", R"({"offset":-1,"sum":""})", R"({"offset":1})", R"({"offset":1,"sum":2})"})
    EXPECT_EQ(source.seek(cursor).code(), Code::kInvalidArgument) << cursor;
}

TEST(DocumentSource, WhatIsReadOnceDoesNotWaitForAFullPiece) {
  DocumentSource source = source_of({"one", "(wait)", "two"});
  std::vector<Document> documents;
  ASSERT_TRUE(source.read(1, Deadline::never(), documents).ok());
  EXPECT_EQ(text_of(documents), "one\n");
  EXPECT_EQ(text_of(rest_of(source)), "two\n");
  EXPECT_EQ(source.seek("").code(), Code::kFailedPrecondition);
}

TEST(DocumentSource, PiecesOfWhatIsReadAgainDoNotDependOnHowQuicklyItComes) {
  DocumentSource source = replayable({"one", "(wait)", "two"});
  std::vector<Document> documents;
  EXPECT_EQ(source.read(1, Deadline::never(), documents).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(text_of(rest_of(source)), "one\ntwo\n");
}

TEST(DocumentSource, NoTextAtAllIsAnError) {
  for (const std::vector<std::string>& texts : {std::vector<std::string>{}, std::vector<std::string>{"", ""}}) {
    DocumentSource source = source_of(texts);
    std::vector<Document> documents;
    EXPECT_EQ(source.read(1, Deadline::never(), documents).status().code(), Code::kInvalidArgument);
    EXPECT_FALSE(source.notes().empty());
  }
}

}  // namespace
}  // namespace streamvec
