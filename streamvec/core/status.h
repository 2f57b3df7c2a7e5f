// Errors as values: a bad file, a lost peer or a late batch are ordinary here, so functions return them.
// Code has gRPC's numbers, so that a Status crosses the wire unchanged. A message says what, where and what to try.
#pragma once

#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace streamvec {

enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// error(Code::kNotFound, path, " is not there"): the parts are joined as a stream would print them.
template <typename... Parts>
Status error(Code code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  return Status(code, message.str());
}

// A value or the reason why there is none. REQUIRES for value(): ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: `return value;` is the point
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: `return error(...);` likewise

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace streamvec

#define STREAMVEC_CONCAT_INNER(a, b) a##b
#define STREAMVEC_CONCAT(a, b) STREAMVEC_CONCAT_INNER(a, b)

#define STREAMVEC_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                         \
    if (auto streamvec_status = (expression); !streamvec_status.ok()) return streamvec_status; \
  } while (false)

#define STREAMVEC_ASSIGN_OR_RETURN(declaration, expression) \
  STREAMVEC_ASSIGN_OR_RETURN_INNER(STREAMVEC_CONCAT(streamvec_result_, __LINE__), declaration, expression)
#define STREAMVEC_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                             \
  if (!result.ok()) return result.status();                               \
  declaration = std::move(result).value()

// Our own mistakes (a broken invariant) stop the program at once and print both values. User input never trips one.
#define STREAMVEC_CHECK(condition)                                                                \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::cerr << __FILE__ << ":" << __LINE__ << ": broken invariant: " #condition << std::endl; \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)
#define STREAMVEC_CHECK_EQ(a, b)                                                                          \
  do {                                                                                                    \
    const auto& streamvec_a = (a);                                                                        \
    const auto& streamvec_b = (b);                                                                        \
    if (!(streamvec_a == streamvec_b)) {                                                                  \
      std::cerr << __FILE__ << ":" << __LINE__ << ": broken invariant: " #a " == " #b " (" << streamvec_a \
                << " against " << streamvec_b << ")" << std::endl;                                        \
      std::abort();                                                                                       \
    }                                                                                                     \
  } while (false)
