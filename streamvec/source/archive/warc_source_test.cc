#include "streamvec/source/archive/warc_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streamvec/source/archive/http_message.h"
#include "streamvec/source/testing_files.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string record(const std::string& type, const std::string& content_type, const std::string& content,
                   const std::string& uri = "http://a.example/x") {
  return "WARC/1.0\r\nWARC-Type: " + type + "\r\nWARC-Target-URI: " + uri +
         "\r\nWARC-Date: 2024-05-01T12:30:00Z\r\nWARC-Record-ID: <urn:uuid:1>\r\nContent-Type: " + content_type +
         "\r\nContent-Length: " + std::to_string(content.size()) + "\r\n\r\n" + content + "\r\n\r\n";
}

std::string sentence(int number) {
  return "This is paragraph number " + std::to_string(number) +
         ", which says something of some length about the city and the river that runs through it.";
}

std::string html(int number) {
  return "<html><head><title>Title " + std::to_string(number) +
         "</title></head><body><div id=menu><a href=/>Home</a></div>"
         "<article><h1>Title " +
         std::to_string(number) + "</h1><p>" + sentence(number) + "</p><p>" + sentence(number + 1) +
         "</p></article></body></html>";
}

std::string response(const std::string& body,
                     const std::string& header = "Content-Type: text/html; charset=utf-8\r\n") {
  return "HTTP/1.1 200 OK\r\n" + header + "\r\n" + body;
}

std::string page_record(int number) {
  return record("response", "application/http; msgtype=response", response(html(number)),
                "http://a.example/" + std::to_string(number));
}

std::string text_record(int number) {
  return record("conversion", "text/plain", "text " + std::to_string(number) + "\nmore\n",
                "http://a.example/" + std::to_string(number));
}

std::vector<Document> documents_of(Source& source) {
  Result<std::vector<Document>> documents = read_all(source, 100);
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  return documents.ok() ? std::move(documents).value() : std::vector<Document>();
}

TEST(WarcSource, GivesTheArticlesOfPagesAndTheTextOfConversions) {
  TemporaryDirectory directory;
  const std::string others = record("warcinfo", "application/warc-fields", "software: x\r\n") +
                             record("request", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n") +
                             record("metadata", "application/warc-fields", "a: b");
  const auto source =
      open_ok<WarcSource>("warc:" + directory.write("a.warc", others + page_record(1) + text_record(2)));
  const std::vector<Document> documents = documents_of(*source);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_THAT(documents[0].text, HasSubstr("Title 1\n"));
  EXPECT_THAT(documents[0].text, HasSubstr(sentence(1)));
  EXPECT_EQ(documents[0].text.find("Home"), std::string::npos);
  EXPECT_EQ(documents[0].id, "http://a.example/1");
  EXPECT_EQ(documents[0].time_s, 1'714'566'600);
  EXPECT_EQ(documents[1].text, "text 2\nmore\n");
  EXPECT_THAT(source->notes(), IsEmpty());
  EXPECT_FALSE(source->capabilities().endless);
}

TEST(WarcSource, UndoesChunksContentCodingsAndCharsets) {
  TemporaryDirectory directory;
  const std::string korean = "<html><body><p>\xbc\xad\xbf\xef</p></body></html>";
  const std::string body = html(1), cut = "5\r\n" + body.substr(0, 5) + "\r\n" + "ffff; x=y\r\n" + body.substr(5);
  const std::string chunked = "Transfer-Encoding: chunked\r\nContent-Type: text/html\r\n";
  const std::string packed = "Content-Encoding: gzip\r\nContent-Type: text/html\r\n";
  const std::string responses[] = {response(cut, chunked), response(body, chunked), response(gzip_bytes(body), packed),
                                   response(body, packed)};
  std::string file;
  for (const std::string& each : responses) file += record("response", "application/http", each);
  for (const Document& document : documents_of(*open_ok<WarcSource>("warc:" + directory.write("a", file))))
    EXPECT_THAT(document.text, HasSubstr(sentence(1)));
  const auto plain = open_ok<WarcSource>(
      "warc:" + directory.write("b", record("resource", "text/plain; charset=euc-kr", "\xbc\xad\xbf\xef plain") +
                                         record("response", "application/http",
                                                response("\xbc\xad", "Content-Type: text/plain; charset=euc-kr\r\n"))));
  const std::vector<Document> documents = documents_of(*plain);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].text, "서울 plain");
  EXPECT_EQ(documents[1].text, "서");
}

TEST(WarcSource, PassesOverErrorsPicturesAndRevisits) {
  TemporaryDirectory directory;
  const auto source = open_ok<WarcSource>(
      "warc:" + directory.write("a", record("response", "application/http", "HTTP/1.1 404 Not Found\r\n\r\n<p>no</p>") +
                                         record("response", "application/http",
                                                response("\x89PNG", "Content-Type: image/png\r\n")) +
                                         record("revisit", "application/http", "HTTP/1.1 200 OK\r\n\r\n") +
                                         record("response", "application/http", "garbage") + text_record(1)));
  EXPECT_EQ(documents_of(*source).size(), 1U);
  EXPECT_THAT(source->notes(),
              ElementsAre(HasSubstr("1 of 4 records are bad"), HasSubstr("2 of 4 records have no text")));
}

TEST(WarcSource, GoesOnAfterAnyDocument) {
  TemporaryDirectory directory;
  std::string plain, members;
  for (int i = 0; i < 40; ++i) {
    const std::string one = i % 3 == 0 ? page_record(i) : text_record(i);
    const std::string request = record("request", "application/http", "GET / HTTP/1.1\r\n\r\n");
    plain += one + request;
    members += gzip_bytes(one) + gzip_bytes(request);
  }
  directory.write("d/a.warc", plain);
  directory.write("d/b.warc.gz", members);
  directory.write("d/c.warc.gz", gzip_bytes(plain));
  directory.write("d/e.warc.zst",
                  zstd_bytes(plain.substr(0, plain.size() / 2)) + zstd_bytes(plain.substr(plain.size() / 2)));
  const std::string name = "warc:" + directory.path("d");
  const auto whole = open_ok<WarcSource>(name);
  std::vector<Document> documents;
  std::vector<int64_t> bytes_read;
  while (whole->read(1, Deadline::never(), documents).value() > 0) bytes_read.push_back(whole->bytes_read());
  ASSERT_EQ(documents.size(), 160U);
  EXPECT_LE(bytes_read.back(), whole->bytes_total());
  for (size_t stop = 0; stop < documents.size(); ++stop) {
    const auto resumed = open_ok<WarcSource>(name);
    const Status status = resumed->seek(whole->saved(documents[stop].cursor));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(resumed->bytes_read(), bytes_read[stop]);
    std::vector<Document> rest = read_all(*resumed, 1'000).value();
    ASSERT_EQ(rest.size(), documents.size() - 1 - stop);
    for (size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i].text, documents[stop + 1 + i].text);
  }
  // A record compressed by itself is found without decoding what comes before it.
  EXPECT_THAT(documents[45].cursor, HasSubstr(" 0 "));
}

TEST(WarcSource, ADamagedMemberCostsThatRecordOnly) {
  TemporaryDirectory directory;
  std::vector<std::string> members;
  for (int i = 0; i < 5; ++i) members.push_back(gzip_bytes(text_record(i)));
  const std::string good = members[2];
  for (size_t at = 0; at < good.size(); ++at) {
    members[2] = good;
    members[2][at] = static_cast<char>(members[2][at] ^ 0x41);
    std::string file;
    for (const std::string& member : members) file += member;
    const auto source = open_ok<WarcSource>("warc:" + directory.write("a", file));
    const std::vector<Document> documents = documents_of(*source);
    const bool harmless = at >= 3 && at < 10;  // flags, time and system in gzip's header
    ASSERT_GE(documents.size(), 4U) << at;
    EXPECT_TRUE(harmless || documents.size() == 4) << at;
    EXPECT_EQ(documents.back().text, "text 4\nmore\n");
  }
}

TEST(WarcSource, ARecordWithAWrongLengthOrHeaderCostsThatRecordOnly) {
  TemporaryDirectory directory;
  const auto texts_with = [&](const std::string& bad) {
    const auto source = open_ok<WarcSource>("warc:" + directory.write("a", text_record(1) + bad + text_record(3)));
    std::vector<std::string> ids;
    for (const Document& document : documents_of(*source)) ids.push_back(document.id);
    return ids;
  };
  const auto with_length = [](const std::string& length) {
    std::string bad = text_record(2);
    const size_t at = bad.find("Content-Length: ") + 16;
    return bad.replace(at, bad.find("\r\n", at) - at, length);
  };
  const auto both = ElementsAre("http://a.example/1", "http://a.example/3");
  for (const char* length : {"3", "5000", "99999999", "-1", "x", "", "99999999999999999999"})
    EXPECT_THAT(texts_with(with_length(length)), both) << length;
  EXPECT_THAT(texts_with("garbage\r\nand more\r\n\r\n"), both);
  EXPECT_THAT(texts_with(std::string(200'000, '\0') + "\r\n"), both);
  EXPECT_THAT(texts_with("WARC/1.0\r\n" + std::string(100'000, 'x') + "\r\n\r\n"), both);
}

TEST(WarcSource, EveryCutGivesTheWholeRecordsBefore) {
  TemporaryDirectory directory;
  const std::string first = text_record(1), plain = first + page_record(2);
  const std::string packed = gzip_bytes(first) + gzip_bytes(page_record(2));
  for (const std::string& file : {plain, packed})
    for (size_t size = 1; size < file.size(); size += 5) {
      const size_t first_size = file == plain ? first.size() - 4 : gzip_bytes(first).size();
      const auto source = open_ok<WarcSource>("warc:" + directory.write("a", file.substr(0, size)));
      const Result<std::vector<Document>> documents = read_all(*source);
      const size_t count = documents.ok() ? documents->size() : 0;
      const size_t whole_at = file == plain ? file.size() - 4 : file.size();
      EXPECT_EQ(count, size >= whole_at ? 2U : size >= first_size ? 1U : 0U) << size;
    }
}

TEST(WarcSource, WhatIsNoArchiveIsAnError) {
  TemporaryDirectory directory;
  for (const std::string& bytes : {std::string(), sample_text(300'000), std::string(300'000, '\n'), gzip_bytes("")})
    EXPECT_EQ(read_all(*open_ok<WarcSource>("warc:" + directory.write("a", bytes))).status().code(),
              Code::kInvalidArgument);
  EXPECT_EQ(WarcSource::open("warc:").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(WarcSource::open("warc:" + directory.path("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(WarcSource::open("warc:" + directory.path() + "?x=1").status().code(), Code::kInvalidArgument);
}

TEST(WarcSource, RefusesACursorThatIsNoneOrOfAnotherFile) {
  TemporaryDirectory directory;
  const std::string path = directory.write("a", text_record(1) + text_record(2));
  const auto source = open_ok<WarcSource>("warc:" + path);
  const std::string saved = source->saved(documents_of(*source)[0].cursor);
  for (const char* bad : {"x", "0 0 0", "0 0 0 0 0", "-1 0 0 0", "{}", "0 0 0 x"})
    EXPECT_EQ(source->seek(bad).code(), Code::kInvalidArgument) << bad;
  EXPECT_EQ(source->seek("7 0 0 0").code(), Code::kFailedPrecondition);
  EXPECT_EQ(source->seek("0 99999 0 0").code(), Code::kFailedPrecondition);
  EXPECT_TRUE(source->seek(saved).ok());
  directory.write("a", text_record(1));
  EXPECT_EQ(open_ok<WarcSource>("warc:" + path)->seek(saved).code(), Code::kFailedPrecondition);
}

TEST(HttpMessage, AStatusHasThreeDigits) {
  std::string scratch;
  EXPECT_EQ(parse_http("HTTP/1.1 200 OK\r\n\r\n", 10, scratch).value().status, 200);
  for (const std::string status : {"2004", "-200", "0", "20"})
    EXPECT_EQ(parse_http("HTTP/1.1 " + status + " OK\r\n\r\n", 10, scratch).status().code(), Code::kInvalidArgument);
}

TEST(HttpMessage, ABombIsRefused) {
  std::string scratch;
  const std::string bomb = response(gzip_bytes(std::string(9 << 20, ' ')), "Content-Encoding: gzip\r\n");
  EXPECT_EQ(parse_http(bomb, 8 << 20, scratch).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(parse_http(response("\x1b\x03\x01", "Content-Encoding: br\r\n"), 100, scratch).status().code(),
            Code::kInvalidArgument);
}

TEST(HttpMessage, EveryCutAndEveryByteIsReadOrRefused) {
  std::string scratch;
  const std::string message =
      response("4\r\nabcd\r\n3;x\r\nefg\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\nContent-Type: text/html\r\n");
  EXPECT_EQ(parse_http(message, 100, scratch)->body, "abcdefg");
  for (size_t at = 0; at < message.size(); ++at) {
    (void)parse_http(message.substr(0, at), 100, scratch).ok();
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = message;
      changed[at] = static_cast<char>(byte);
      (void)parse_http(changed, 100, scratch).ok();
    }
  }
}

}  // namespace
}  // namespace streamvec
