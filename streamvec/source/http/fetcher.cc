#include "streamvec/source/http/fetcher.h"

#include <mutex>

#include "streamvec/source/http/fetch_engine.h"

namespace streamvec {
namespace {

// Made when it is first asked for, joined when the program ends.
struct Process {
  std::mutex mutex;
  Fetcher::Options options;
  std::unique_ptr<Fetcher> fetcher;
};
Process& the_process() {
  static Process process;
  return process;
}

}  // namespace

std::string Fetcher::default_user_agent() {
  return "streamvec/" STREAMVEC_VERSION " (learns word vectors from text; obeys robots.txt)";
}

Fetcher::Fetcher(Options options) : engine_(std::make_unique<Engine>(std::move(options))) {}
Fetcher::~Fetcher() = default;

Fetcher& Fetcher::process() {
  Process& process = the_process();
  const std::lock_guard lock(process.mutex);
  if (process.fetcher == nullptr) process.fetcher = std::make_unique<Fetcher>(process.options);
  return *process.fetcher;
}

void Fetcher::configure_process(Options options) {
  Process& process = the_process();
  const std::lock_guard lock(process.mutex);
  STREAMVEC_CHECK(process.fetcher == nullptr);
  process.options = std::move(options);
}

const Fetcher::Options& Fetcher::options() const {
  return engine_->options();
}

Fetcher::Channel::Channel(Fetcher& fetcher) : fetcher_(fetcher), channel_(fetcher.engine_->open_channel()) {}

Fetcher::Channel::~Channel() {
  fetcher_.engine_->close_channel(channel_);
}

uint64_t Fetcher::Channel::submit(FetchRequest request) {
  return fetcher_.engine_->submit(channel_, std::move(request));
}

std::optional<FetchResponse> Fetcher::Channel::take(Deadline deadline) {
  return fetcher_.engine_->take(channel_, deadline);
}

FetchResponse Fetcher::Channel::get(FetchRequest request, Deadline deadline) {
  const Url url = request.url;
  submit(std::move(request));
  if (std::optional<FetchResponse> response = take(deadline)) return *std::move(response);
  FetchResponse late;
  late.url = url;
  late.status = error(Code::kDeadlineExceeded, url.text, ": no answer in time");
  return late;
}

}  // namespace streamvec
