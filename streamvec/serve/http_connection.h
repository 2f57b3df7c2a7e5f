// One client's connection: requests one after the other, each with its deadlines. Private to the server.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "streamvec/serve/byte_stream.h"
#include "streamvec/serve/http_server.h"

namespace streamvec {

class HttpConnection;

// What a connection needs of its server; on the network's thread but for post().
class HttpConnectionHost {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~HttpConnectionHost() = default;
  virtual const HttpServer::Options& options() const = 0;
  virtual HttpHandler& handler() = 0;
  virtual void post(std::function<void()> work) = 0;  // thread-safe; nothing happens once the server has stopped
  virtual void gone(HttpConnection& connection) = 0;
  // Whether the client has not asked too often.
  virtual bool may_ask(const std::string& client) = 0;
  // Takes from, or gives back to, what all bodies may have; false: there is not so much left.
  virtual bool take_body_bytes(int64_t bytes) = 0;
  virtual void count_sent(int64_t bytes) = 0;
  virtual void count_events(int change) = 0;
};

class HttpConnection final : public HttpExchange,
                             public EventSink,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = HttpConnectionHost::Clock;

  HttpConnection(std::shared_ptr<HttpConnectionHost> host, std::unique_ptr<ByteStream> stream, std::string client);
  ~HttpConnection() override;

  void start();
  // Ends what a deadline has passed for; true when the client was slow, not merely silent between two requests.
  bool close_if_late(Clock::time_point now);
  void close();
  bool closed() const { return stage_ == Stage::kClosed; }
  // Whether nobody would lose an answer if it were closed, and since when it is so.
  bool expendable() const { return stage_ <= Stage::kHeader; }
  Clock::time_point since() const { return since_; }
  bool awaits_answer() const { return stage_ == Stage::kAnswering || stage_ == Stage::kWriting; }
  const std::string& client() const { return client_; }

  const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override;
  std::shared_ptr<EventSink> begin_events() override;
  bool send(std::shared_ptr<const std::string> bytes) override;
  bool is_open() const override { return !dead_; }
  void end() override;

 private:
  enum class Stage { kHandshake, kIdle, kHeader, kBody, kAnswering, kWriting, kEvents, kLingering, kClosed };
  struct Parser;

  void enter(Stage stage, double patience_s);
  void begin_request();
  void read();
  void take(size_t bytes);
  void parse();
  void header_is_there();
  Status fill_request();
  void body_is_there();
  void refuse(int status, std::string_view message);
  std::string common_headers() const;
  void put_answer(const HttpResponse& response, bool last);
  void put(std::shared_ptr<const std::string> bytes);
  void write();
  void wrote(size_t bytes);
  void all_written();
  void linger();
  void give_back_body();

  const std::shared_ptr<HttpConnectionHost> host_;
  const std::unique_ptr<ByteStream> stream_;
  const std::string client_;
  std::unique_ptr<Parser> parser_;
  HttpRequest request_;
  Stage stage_ = Stage::kHandshake;
  Clock::time_point since_ = Clock::now(), deadline_ = Clock::time_point::max();
  Clock::time_point write_deadline_ = Clock::time_point::max();
  std::vector<char> input_;
  size_t input_begin_ = 0, input_end_ = 0;  // read and not parsed yet
  bool reading_ = false, writing_ = false, keep_ = false, unread_ = false, head_only_ = false, http_1_0_ = false;
  int64_t body_bytes_ = 0;  // taken from what all may have
  std::deque<std::shared_ptr<const std::string>> output_;
  size_t output_at_ = 0;  // of the first of them, written
  std::atomic<int64_t> backlog_{0};
  std::atomic<bool> dead_{false};
};

}  // namespace streamvec
