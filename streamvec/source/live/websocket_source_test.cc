#include "streamvec/source/live/websocket_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "streamvec/core/random.h"
#include "streamvec/source/live/live_testing.h"
#include "streamvec/source/testing_servers.h"

namespace streamvec {
namespace {

using Op = WebSocketOpcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Source> open_websocket(const ScriptedServer& server, const std::string& rest = "/?private=1") {
  Result<std::unique_ptr<Source>> source = WebSocketSource::open("ws://" + server.authority() + rest);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return std::move(*source);
}

constexpr int64_t kBegin = 1'725'911'162'329'308;

// As Jetstream sends them; numbers that are even share their time with the one before.
std::string post(int number, const std::string& operation = "create") {
  const std::string id = std::to_string(number);
  const std::string record =
      operation == "delete"
          ? ""
          : ",\"record\":{\"$type\":\"app.bsky.feed.post\",\"createdAt\":\"2024-09-09T19:46:02.102Z\","
            "\"langs\":[\"en\"],\"text\":\"post " +
                id + "\"},\"cid\":\"c" + id + "\"";
  return "{\"did\":\"did:plc:abc\",\"time_us\":" + std::to_string(kBegin + number / 2) +
         ",\"kind\":\"commit\",\"commit\":{\"rev\":\"r\",\"operation\":\"" + operation +
         "\",\"collection\":\"app.bsky.feed.post\",\"rkey\":\"k" + id + "\"" + record + "}}";
}

// The time_us that a request asks for; 0 for none.
int64_t asked_cursor(const ScriptedPeer& peer) {
  const size_t at = peer.request().find("cursor=");
  return at == std::string::npos ? 0 : std::stoll(peer.request().substr(at + 7));
}

TEST(WebSocketSource, ReadsMessagesAndAnswersPings) {
  std::string heard;
  {
    ScriptedServer server([&](ScriptedPeer& peer) {
      peer.send(switching(peer.request()) + server_frame(Op::kText, "first") + server_frame(Op::kPing, "alive?") +
                server_frame(Op::kText, "sec", false) + server_frame(Op::kContinuation, "ond"));
      heard = peer.await_close();
    });
    EXPECT_THAT(texts(read_documents(*open_websocket(server), 2)), ElementsAre("first", "second"));
  }
  ASSERT_GE(heard.size(), 12u);
  EXPECT_EQ(static_cast<uint8_t>(heard[0]), 0x8A) << "a pong";
  EXPECT_EQ(static_cast<uint8_t>(heard[1]), 0x80 | 6) << "masked, with the ping's payload";
  EXPECT_EQ(static_cast<uint8_t>(heard[12]), 0x88) << "and a good-bye";
}

TEST(WebSocketSource, ReadsOverTlsFromAServerItTrusts) {
  const std::string large(200'000, 'x');
  ScriptedServer server([&](ScriptedPeer& peer) {
    peer.send(switching(peer.request()) + server_frame(Op::kText, "sealed") + server_frame(Op::kText, large));
    peer.stall();
  });
  const TestCertificate certificate;
  ServerProcess front(tls_front(certificate, server.port()));
  const std::string name = "wss://" + front.authority() + "/?private=1";
  auto trusting = WebSocketSource::open(name + "&ca=" + certificate.certificate());
  ASSERT_TRUE(trusting.ok()) << trusting.status().message();
  EXPECT_THAT(texts(read_documents(**trusting, 2)), ElementsAre("sealed", large));
  const int before = server.connections();
  auto doubting = WebSocketSource::open(name);
  ASSERT_TRUE(doubting.ok()) << doubting.status().message();
  EXPECT_EQ(first_error(**doubting).code(), Code::kUnavailable) << "nobody vouches for it";
  EXPECT_EQ(server.connections(), before);
}

TEST(WebSocketSource, ReadsJetstreamsFormWithDeletes) {
  std::string request;
  ScriptedServer server([&](ScriptedPeer& peer) {
    request = peer.request();
    peer.send(switching(peer.request()) + server_frame(Op::kText, post(1)) +
              server_frame(Op::kText, "{\"did\":\"d\",\"time_us\":1725911162329309,\"kind\":\"identity\"}") +
              server_frame(Op::kText, post(4, "update")) + server_frame(Op::kText, post(1, "delete")));
    peer.stall();
  });
  const auto source = open_websocket(server, "/subscribe?private=1&form=jetstream");
  const std::vector<Document> documents = read_documents(*source, 3);
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[0].text, "post 1");
  EXPECT_EQ(documents[0].id, "did:plc:abc/k1");
  EXPECT_EQ(documents[0].time_s, kBegin / 1'000'000);
  EXPECT_EQ(documents[1].text, "post 4");
  EXPECT_TRUE(documents[2].deleted);
  EXPECT_EQ(documents[2].id, documents[0].id);
  EXPECT_THAT(request, HasSubstr("GET /subscribe?wantedCollections=app.bsky.feed.post HTTP/1.1"));
  EXPECT_EQ(source->capabilities().lookback_s, 86'400);
}

// The server begins at the time asked for and hangs up anywhere, also inside a frame.
TEST(WebSocketSource, LosesNothingAndGivesNothingTwiceThroughBreaksAndRestarts) {
  ScriptedServer server([](ScriptedPeer& peer) {
    Random random(static_cast<uint64_t>(peer.number()));
    std::string stream;
    const int64_t from = asked_cursor(peer);
    for (int number = 1; number <= 200; ++number)
      if (kBegin + number / 2 >= from) stream += server_frame(Op::kText, post(number));
    peer.send(switching(peer.request()) + stream.substr(0, 4'000 + random.below(8'000)));
  });
  std::multiset<std::string> seen;
  std::string saved;
  Random random(1);
  for (int life = 0; seen.size() < 200; ++life) {
    const auto source = open_websocket(server, "/subscribe?private=1&form=jetstream&overlap=7&retry=20");
    ASSERT_TRUE(source->seek(saved).ok());
    std::vector<Document> documents = read_documents(*source, std::min<size_t>(60, 200 - seen.size()));
    ASSERT_LT(life, 40);
    if (documents.size() > 1)
      documents.resize(documents.size() - random.below(static_cast<uint32_t>(documents.size())));
    for (const Document& document : documents) seen.insert(document.id);
    if (!documents.empty()) saved = source->saved(documents.back().cursor);
  }
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 200u);
}

TEST(WebSocketSource, AsksForALittleLessThanItsPlace) {
  std::vector<int64_t> asked;
  ScriptedServer server([&](ScriptedPeer& peer) {
    asked.push_back(asked_cursor(peer));
    peer.send(switching(peer.request()) + server_frame(Op::kText, post(2 * (peer.number() + 1))));
  });
  EXPECT_EQ(read_documents(*open_websocket(server, "/?private=1&form=jetstream"), 2).size(), 2u);
  ASSERT_GE(asked.size(), 2u);
  EXPECT_EQ(asked[0], 0);
  EXPECT_EQ(asked[1], kBegin + 1 - 5'000'000);
}

TEST(WebSocketSource, AGeneralStreamMayHaveTokensThatAreNoNumbers) {
  ScriptedServer server([](ScriptedPeer& peer) {
    const bool again = peer.request().find("GET /feed?room=1&since=t%2F2 ") != std::string::npos;
    EXPECT_TRUE(again || peer.number() == 0) << peer.request();
    const auto message = [](const std::string& n) {
      return server_frame(Op::kText, "{\"at\":\"t/" + n + "\",\"text\":\"message " + n + "\"}");
    };
    peer.send(switching(peer.request()) + (again ? message("2") + message("3") : message("1") + message("2")));
  });
  const auto source =
      open_websocket(server, "/feed?room=1&private=1&format=json&cursor=/at&cursor-param=since&lookback=60");
  EXPECT_THAT(texts(read_documents(*source, 3)), ElementsAre("message 1", "message 2", "message 3"));
  EXPECT_TRUE(source->capabilities().replayable);
}

TEST(WebSocketSource, RefusesAWrongAcceptKeyRedirectsAndEndlessHeads) {
  const auto code = [](const std::function<std::string(const std::string&)>& answer) {
    ScriptedServer server([&](ScriptedPeer& peer) { peer.send(answer(peer.request())); });
    return first_error(*open_websocket(server)).code();
  };
  EXPECT_EQ(code([](const std::string&) { return switching("GET / HTTP/1.1\r\nSec-WebSocket-Key: other\r\n\r\n"); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](const std::string&) { return "HTTP/1.1 301 Moved\r\nLocation: ws://10.0.0.1/\r\n\r\n"; }),
            Code::kFailedPrecondition);
  EXPECT_EQ(code([](const std::string&) { return "HTTP/1.1 101 X\r\nA: " + std::string(100'000, 'a'); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](const std::string&) { return "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n\r\n"; }), Code::kUnavailable);
  EXPECT_EQ(code([](const std::string&) { return ""; }), Code::kUnavailable);
}

TEST(WebSocketSource, HangsUpOnABrokenProtocolAndComesBack) {
  ScriptedServer server([](ScriptedPeer& peer) {
    const std::string broken[] = {server_frame(Op::kPing, "cut", false),
                                  std::string("\x81\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10),
                                  server_frame(Op::kClose, websocket_close_payload(1001, "restart"))};
    peer.send(switching(peer.request()) + server_frame(Op::kText, "message " + std::to_string(peer.number())));
    peer.send(broken[peer.number() % 3]);
    peer.await_close();
  });
  EXPECT_THAT(texts(read_documents(*open_websocket(server), 4)),
              ElementsAre("message 0", "message 1", "message 2", "message 3"));
}

TEST(WebSocketSource, PassesOverHugeMessagesAndSuchAsAreNoText) {
  ScriptedServer server([](ScriptedPeer& peer) {
    peer.send(switching(peer.request()) + server_frame(Op::kText, std::string(size_t{5} << 20, 'x')));
    peer.send(server_frame(Op::kText, "\xFF\xFE") + server_frame(Op::kBinary, "bytes") +
              server_frame(Op::kText, "good"));
    peer.stall();
  });
  const auto source = open_websocket(server);
  EXPECT_THAT(texts(read_documents(*source, 1)), ElementsAre("good"));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("3 records could not be read")));
}

TEST(WebSocketSource, AsksForASignOfLifeAndComesBackWhenThereIsNone) {
  std::string heard;
  {
    ScriptedServer server([&](ScriptedPeer& peer) {
      peer.send(switching(peer.request()) + server_frame(Op::kText, "message " + std::to_string(peer.number())));
      const std::string all = peer.await_close();
      if (peer.number() == 0) heard = all;
    });
    EXPECT_THAT(texts(read_documents(*open_websocket(server, "/?private=1&idle=1"), 2)),
                ElementsAre("message 0", "message 1"));
  }
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(static_cast<uint8_t>(heard[0]), 0x89) << "a ping";
}

TEST(WebSocketSource, DestroyingItInTheMiddleOfConnectingDoesNotWait) {
  ScriptedServer server([](ScriptedPeer& peer) { peer.stall(); });
  auto source = open_websocket(server);
  std::vector<Document> documents;
  EXPECT_EQ(source->read(1, Deadline::after(std::chrono::milliseconds(50)), documents).status().code(),
            Code::kDeadlineExceeded);
  const auto begin = Deadline::Clock::now();
  source.reset();
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(10));
}

TEST(WebSocketSource, PrivateAddressesAreRefusedUnlessAllowed) {
  ScriptedServer server([](ScriptedPeer& peer) { peer.stall(); });
  EXPECT_EQ(first_error(*open_websocket(server, "/")).code(), Code::kPermissionDenied);
  EXPECT_EQ(first_error(**WebSocketSource::open("ws://[::ffff:127.0.0.1]:1/")).code(), Code::kPermissionDenied);
}

TEST(WebSocketSource, CredentialsGoIntoTheRequestAndNotIntoMessages) {
  std::string request;
  ScriptedServer server([&](ScriptedPeer& peer) {
    request = peer.request();
    peer.send(switching(peer.request()) + server_frame(Op::kText, "x"));
  });
  const auto result = WebSocketSource::open("ws://me:secret@" + server.authority() + "/?private=1");
  ASSERT_TRUE(result.ok());
  Source* const source = result->get();
  EXPECT_EQ(read_documents(*source, 1).size(), 1u);
  EXPECT_THAT(request, HasSubstr("Authorization: Basic bWU6c2VjcmV0\r\n"));
  EXPECT_THAT(source->name(), ::testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace streamvec
