#include "streamvec/source/live/sse_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "streamvec/core/random.h"
#include "streamvec/source/live/live_testing.h"

namespace streamvec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Source> open_sse(const ScriptedServer& server, const std::string& rest = "/events?private=1") {
  Result<std::unique_ptr<Source>> source = SseSource::open("sse+http://" + server.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(*source);
}

std::string event(int number) {
  const std::string id = std::to_string(number);
  return "id: " + id + "\ndata: text number " + id + "\n\n";
}

int last_id(const ScriptedPeer& peer) {
  const std::string id = header_value(peer.request(), "last-event-id");
  return id.empty() ? 0 : std::stoi(id);
}

TEST(SseSource, GoesOnAfterTheLastIdWhenTheConnectionBreaksInsideAnEvent) {
  ScriptedServer server([](ScriptedPeer& peer) {
    const int first = last_id(peer) + 1;
    peer.send(kEventStream + event(first) + event(first + 1) + "id: 999\ndata: half an ev");
  });
  const auto source = open_sse(server);
  EXPECT_THAT(texts(read_documents(*source, 5)),
              ElementsAre("text number 1", "text number 2", "text number 3", "text number 4", "text number 5"));
  EXPECT_GE(server.connections(), 3);
}

// The server begins up to three events before the place asked for, and hangs up after random bytes.
TEST(SseSource, LosesNothingAndGivesNothingTwiceThroughBreaksAndRestarts) {
  ScriptedServer server([](ScriptedPeer& peer) {
    Random random(static_cast<uint64_t>(peer.number()));
    std::string stream;
    const int from = std::max(0, last_id(peer) - static_cast<int>(random.below(4)));
    for (int number = from + 1; number <= 300; ++number) stream += event(number);
    peer.send(kEventStream + stream.substr(0, random.below(1'500)));
  });
  std::multiset<std::string> seen;
  std::string saved;
  Random random(1);
  for (int life = 0; life < 12 || seen.size() < 300; ++life) {
    const auto source = open_sse(server);
    ASSERT_TRUE(source->seek(saved).ok());
    std::vector<Document> documents = read_documents(*source, std::min<size_t>(40, 300 - seen.size()));
    ASSERT_LT(life, 60);
    // The last ones are read but not saved, as when the program is killed.
    if (documents.size() > 1)
      documents.resize(documents.size() - random.below(static_cast<uint32_t>(documents.size())));
    for (const Document& document : documents) seen.insert(document.text);
    if (!documents.empty()) saved = source->saved(documents.back().cursor);
  }
  EXPECT_EQ(seen.size(), 300u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 300u);
}

TEST(SseSource, BytesReadAreTheSameAfterSeek) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(kEventStream + event(last_id(peer) + 1) + event(last_id(peer) + 2));
    peer.stall();
  });
  const auto source = open_sse(server);
  const std::vector<Document> documents = read_documents(*source, 1);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(source->bytes_read(), 13);
  const auto other = open_sse(server);
  ASSERT_TRUE(other->seek(documents[0].cursor).ok());
  EXPECT_EQ(other->bytes_read(), 13);
  EXPECT_EQ(other->seek("nonsense").code(), Code::kInvalidArgument);
}

TEST(SseSource, A204EndsTheStream) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(peer.number() == 0 ? kEventStream + event(1) : "HTTP/1.1 204 No Content\r\n\r\n");
  });
  const auto source = open_sse(server);
  EXPECT_EQ(read_documents(*source, 5).size(), 1u);
  std::vector<Document> more;
  EXPECT_EQ(*source->read(1, Deadline::never(), more), 0);
}

TEST(SseSource, RefusesRedirectsOtherPagesAndWrongAnswersAtTheStart) {
  const auto code = [](const std::string& answer) {
    ScriptedServer server([&](ScriptedPeer& peer) { peer.send(answer); });
    return first_error(*open_sse(server)).code();
  };
  EXPECT_EQ(code("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"), Code::kFailedPrecondition);
  EXPECT_EQ(code("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\ndata: x\n\n"), Code::kInvalidArgument);
  EXPECT_EQ(code("HTTP/1.1 404 Not Found\r\n\r\n"), Code::kNotFound);
  EXPECT_EQ(code("HTTP/1.1 401 No\r\n\r\n"), Code::kUnauthenticated);
  EXPECT_EQ(code("HTTP/1.1 503 Later\r\n\r\n"), Code::kUnavailable);
  EXPECT_EQ(code("no http at all\r\n\r\n"), Code::kUnavailable);
}

TEST(SseSource, AServerThatOnceAgreedIsNotGivenUp) {
  ScriptedServer server([](ScriptedPeer& peer) {
    const std::string answers[] = {kEventStream + event(1), "HTTP/1.1 404 Not Found\r\n\r\n", "garbage\r\n\r\n",
                                   "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", kEventStream + event(2)};
    peer.send(answers[std::min(peer.number(), 4)]);
  });
  const auto source = open_sse(server);
  int faults = 0;
  EXPECT_THAT(texts(read_documents(*source, 2, &faults)), ElementsAre("text number 1", "text number 2"));
  EXPECT_GT(faults, 0);
}

TEST(SseSource, ComesBackWhenNothingIsHeard) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(kEventStream + event(peer.number() + 1));
    peer.stall();
  });
  const auto source = open_sse(server, "/?private=1&idle=1");
  EXPECT_EQ(read_documents(*source, 2).size(), 2u);
}

TEST(SseSource, AFloodOfCommentsDoesNotOutlastTheDeadline) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(kEventStream);
    while (peer.send(":" + std::string(60'000, 'x') + "\n")) continue;
  });
  const auto source = open_sse(server);
  std::vector<Document> documents;
  const auto begin = Deadline::Clock::now();
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(200)), documents).status().code(),
            Code::kDeadlineExceeded);
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(30)) << "it would have no end";
}

TEST(SseSource, AFastSenderWaitsForTheReader) {
  std::atomic<int64_t> sent = 0;
  ScriptedServer server([&](ScriptedPeer& peer) {
    peer.send(kEventStream);
    for (int number = 1; number <= 20'000; ++number) {
      if (!peer.send("id: " + std::to_string(number) + "\ndata: " + std::string(2'000, 'x') + "\n\n")) return;
      sent = peer.sent.load();
    }
    peer.stall();
  });
  const auto source = open_sse(server);
  EXPECT_EQ(read_documents(*source, 1).size(), 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(sent.load(), 20'000'000) << "40 MB are sent only as they are read";
  EXPECT_EQ(read_documents(*source, 19'999).size(), 19'999u);
}

TEST(SseSource, BadAndHugeEventsAreCountedAndPassedOver) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(kEventStream + "data: {\"text\":\"good\"}\n\ndata: {broken\n\n");
    peer.send("data: " + std::string(size_t{5} << 20, 'x') + "\n\ndata: {\"text\":\"after\"}\n\n");
    peer.stall();
  });
  const auto source = open_sse(server, "/?private=1&format=json");
  EXPECT_THAT(texts(read_documents(*source, 2)), ElementsAre("good", "after"));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("2 records could not be read")));
}

TEST(SseSource, KeysThatAreNotOursGoToTheServer) {
  std::string request;
  ScriptedServer server([&](ScriptedPeer& peer) {
    request = peer.request();
    peer.send(kEventStream + event(1));
    peer.stall();
  });
  EXPECT_EQ(read_documents(*open_sse(server, "/a%20b?since=1&private=1&x=2&x=3&send-format=raw"), 1).size(), 1u);
  EXPECT_THAT(request, HasSubstr("GET /a%20b?since=1&x=2&x=3&format=raw HTTP/1.1\r\n"));
}

TEST(SseSource, PrivateAddressesAreRefusedUnlessAllowed) {
  ScriptedServer server([](ScriptedPeer& peer) { peer.send(kEventStream + event(1)); });
  EXPECT_EQ(first_error(*open_sse(server, "/")).code(), Code::kPermissionDenied);
  EXPECT_EQ(server.connections(), 0);
}

TEST(SseSource, OnlyEventsOfTheTypeAskedForAreRead) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(kEventStream + "data: a\n\nevent: note\ndata: b\n\nevent: x\ndata: c\n\nevent: note\ndata: d\n\n");
    peer.stall();
  });
  EXPECT_THAT(texts(read_documents(*open_sse(server, "/?private=1&event=note"), 2)), ElementsAre("b", "d"));
}

// As recorded from EventStreams: ids are JSON arrays of timestamps, events carry topic, partition and offset; the
// server goes back to timestamps, so that the last event of each topic comes again.
TEST(SseSource, ReadsWikimediasFormWithoutRepeats) {
  const auto change = [](const std::string& topic, int offset) {
    const std::string number = std::to_string(offset);
    return "event: message\nid: [{\"topic\":\"" + topic + "\",\"partition\":0,\"timestamp\":17000000" + number +
           "}]\ndata: {\"meta\":{\"id\":\"u-" + topic + number + "\",\"dt\":\"2024-05-01T12:30:00Z\",\"topic\":\"" +
           topic + "\",\"partition\":0,\"offset\":" + number + "},\"title\":\"Title " + number +
           "\",\"comment\":\"by " + topic + "\"}\n\n";
  };
  ScriptedServer server([&](ScriptedPeer& peer) {
    peer.send(peer.number() == 0 ? kEventStream + change("codfw", 7) + change("eqiad", 1) + change("eqiad", 2)
                                 : kEventStream + change("eqiad", 2) + change("codfw", 7) + change("eqiad", 3));
    if (peer.number() > 0) {
      EXPECT_THAT(peer.request(), HasSubstr("Last-Event-ID: [{\"topic\":\"eqiad\""));
    }
  });
  const auto source = open_sse(server, "/v2/stream/recentchange?private=1&form=wikimedia");
  const std::vector<Document> documents = read_documents(*source, 4);
  EXPECT_THAT(texts(documents),
              ElementsAre("Title 7\nby codfw", "Title 1\nby eqiad", "Title 2\nby eqiad", "Title 3\nby eqiad"));
  EXPECT_EQ(documents[0].id, "u-codfw7");
  EXPECT_EQ(documents[0].time_s, 1714566600);
  EXPECT_EQ(source->capabilities().lookback_s, 604'800);
  EXPECT_TRUE(source->capabilities().endless);
  EXPECT_FALSE(source->capabilities().pausable);
}

TEST(SseSource, NamesThatAreWrongAreRefusedWhenOpened) {
  for (const char* name : {"sse+http://", "sse+http:///x", "sse+http://h/?idle=0", "sse+http://h/a b",
                           "sse+http://h/?form=x", "sse+http://h/?private=2"})
    EXPECT_EQ(SseSource::open(name).status().code(), Code::kInvalidArgument) << name;
}

}  // namespace
}  // namespace streamvec
