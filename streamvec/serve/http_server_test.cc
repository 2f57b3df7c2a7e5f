#include "streamvec/serve/http_server.h"

#include <gtest/gtest.h>

#include <boost/asio.hpp>
#include <thread>

namespace streamvec {
namespace {

struct Greeter final : HttpHandler {
  std::optional<HttpResponse> admit(HttpRequest&, Role, bool) override { return std::nullopt; }
  void handle(std::shared_ptr<HttpExchange> exchange) override { exchange->respond({.body = "hello"}); }
  void refused(const HttpRequest&, int) override {}
  std::vector<NameAndText> headers_for(const HttpRequest&) const override { return {{"X-Every", "answer"}}; }
};

// What its owner knows of a server before it begins is there for the first request, too.
TEST(HttpServer, AnswersNobodyBeforeItBegins) {
  Greeter greeter;
  HttpServer::Options options;
  options.address = {"127.0.0.1", 0};
  const auto server = HttpServer::listen(options, greeter).value();
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket client(io);
  client.connect({boost::asio::ip::make_address("127.0.0.1"), server->port()});
  boost::asio::write(client, boost::asio::buffer(std::string_view("GET / HTTP/1.0\r\n\r\n")));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(client.available(), 0u);
  EXPECT_EQ(server->statistics().accepted, 0);
  server->begin();
  std::string answer;
  boost::system::error_code end;
  boost::asio::read(client, boost::asio::dynamic_buffer(answer), end);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("X-Every: answer\r\n"), std::string::npos) << answer;
}

}  // namespace
}  // namespace streamvec
