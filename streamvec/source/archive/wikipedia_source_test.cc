#include "streamvec/source/archive/wikipedia_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kBegin =
    "<mediawiki xmlns=\"http://www.mediawiki.org/xml/export-0.10/\" xml:lang=\"ko\">\n<siteinfo><namespaces>\n"
    "<namespace key=\"0\" case=\"first-letter\" />\n<namespace key=\"6\" case=\"first-letter\">파일</namespace>\n"
    "<namespace key=\"14\" case=\"first-letter\">분류</namespace>\n</namespaces></siteinfo>\n";

std::string page(int number, const std::string& text, const std::string& extra = "<ns>0</ns>") {
  return "  <page>\n    <title>Page &amp; " + std::to_string(number) + "</title>\n    " + extra + "\n    <id>" +
         std::to_string(number) +
         "</id>\n    <revision>\n      <id>9</id>\n      <timestamp>2024-05-01T12:30:00Z</timestamp>\n      "
         "<text bytes=\"7\" xml:space=\"preserve\">" +
         text + "</text>\n    </revision>\n  </page>\n";
}

TEST(WikipediaSource, GivesPagesOfTheMainNamespaceThatAreNoRedirects) {
  TemporaryDirectory directory;
  const std::string dump =
      kBegin +
      page(1, "'''Seoul''' is [[city|a city]].&lt;ref&gt;x&lt;/ref&gt; &amp;amp; [[파일:a.jpg|thumb|x]][[분류:도시]]") +
      page(2, "talk", "<ns>1</ns>") + page(3, "#REDIRECT [[Seoul]]", "<ns>0</ns><redirect title=\"Seoul\" />") +
      page(4, " #redirect [[X]]") + page(5, "{{only a template}}") + page(6, "last") + "</mediawiki>\n";
  for (const Compression compression : kCompressions) {
    const auto source = open_ok<WikipediaSource>("wikipedia:" + directory.write("dump", compressed(compression, dump)));
    const std::vector<Document> documents = read_all(*source, 100).value();
    ASSERT_EQ(documents.size(), 2U);
    EXPECT_EQ(documents[0].text, "Page & 1\nSeoul is a city. &\n");
    EXPECT_EQ(documents[0].id, "1");
    EXPECT_EQ(documents[0].time_s, 1'714'566'600);
    EXPECT_EQ(documents[1].text, "Page & 6\nlast\n");
    EXPECT_TRUE(source->notes().empty());
    EXPECT_FALSE(source->capabilities().endless);
  }
}

TEST(WikipediaSource, GoesOnAfterAnyDocument) {
  TemporaryDirectory directory;
  std::string plain = kBegin, streams = bzip2_bytes(kBegin), part;
  for (int i = 0; i < 60; ++i) {
    part += page(i, "text " + std::to_string(i) + std::string(static_cast<size_t>(i % 9 * 1'000), 'x'));
    if (i % 10 != 9) continue;
    plain += part;
    streams += bzip2_bytes(part);
    part.clear();
  }
  directory.write("d/a.xml", plain + "</mediawiki>");
  directory.write("d/b.bz2", streams + bzip2_bytes("</mediawiki>"));
  directory.write("d/c.gz", gzip_bytes(plain));
  const std::string name = "wikipedia:" + directory.path("d");
  const auto whole = open_ok<WikipediaSource>(name);
  std::vector<Document> documents;
  std::vector<int64_t> bytes_read;
  while (whole->read(1, Deadline::never(), documents).value() > 0) bytes_read.push_back(whole->bytes_read());
  ASSERT_EQ(documents.size(), 180U);
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const auto resumed = open_ok<WikipediaSource>(name);
    const Status status = resumed->seek(whole->saved(documents[stop].cursor));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]);
    std::vector<Document> rest = read_all(*resumed, 1'000).value();
    ASSERT_EQ(rest.size(), documents.size() - 1 - stop);
    for (size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[i].text, documents[stop + 1 + i].text);
      EXPECT_EQ(rest[i].id, documents[stop + 1 + i].id);
    }
  }
}

TEST(WikipediaSource, ADumpCutAnywhereGivesTheWholePagesBefore) {
  TemporaryDirectory directory;
  const std::string dump = kBegin + page(1, "one") + page(2, "two");
  for (size_t size = 1; size < dump.rfind("</page>") + 7; size += 3) {
    const auto source = open_ok<WikipediaSource>("wikipedia:" + directory.write("dump", dump.substr(0, size)));
    const size_t first_end = dump.find("</page>") + 7;
    const Result<std::vector<Document>> documents = read_all(*source);
    EXPECT_EQ(documents.ok() ? documents->size() : 0, size >= first_end ? 1U : 0U) << size;
    EXPECT_EQ(documents.ok(), size >= first_end);
  }
}

TEST(WikipediaSource, ACompressedDumpThatIsDamagedGoesOnWithTheNextStream) {
  TemporaryDirectory directory;
  std::string damaged = bzip2_bytes(page(2, "two"));
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  const std::string path =
      directory.write("dump", bzip2_bytes(kBegin + page(1, "one")) + damaged + bzip2_bytes(page(3, "three")));
  const auto source = open_ok<WikipediaSource>("wikipedia:" + path);
  const std::vector<Document> documents = read_all(*source).value();
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[1].id, "3");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("bzip2 stream")));
}

TEST(WikipediaSource, APageBeyondTheLimitIsCountedAndTheNextIsRead) {
  TemporaryDirectory directory;
  const auto source = open_ok<WikipediaSource>(
      "wikipedia:" +
      directory.write("dump", zstd_bytes(kBegin + page(1, std::string(17 << 20, 'x')) + page(2, "two"))));
  const std::vector<Document> documents = read_all(*source).value();
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].id, "2");
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("larger than")));
}

TEST(WikipediaSource, WhatIsNoDumpIsAnError) {
  TemporaryDirectory directory;
  for (const std::string& bytes :
       {std::string(), std::string(100'000, '\0'), std::string("<page>"), sample_text(200'000)})
    EXPECT_EQ(read_all(*open_ok<WikipediaSource>("wikipedia:" + directory.write("dump", bytes))).status().code(),
              Code::kInvalidArgument);
  EXPECT_EQ(WikipediaSource::open("wikipedia:").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(WikipediaSource::open("wikipedia:" + directory.path("no")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace streamvec
