// The brokers whose library this build does not have: opening one says which package it wants.
#include "streamvec/source/broker/kafka_source.h"
#include "streamvec/source/broker/nats_source.h"
#include "streamvec/source/broker/redis_source.h"

namespace streamvec {
namespace {

[[maybe_unused]] Status absent(const std::string& name, const char* what, const char* package) {
  return error(Code::kUnimplemented, name.substr(0, name.find(':')), ":// sources need ", what,
               ", which this program was built without; install ", package, " and build again");
}

}  // namespace

#ifndef STREAMVEC_NATS
Result<std::unique_ptr<Source>> NatsSource::open(const std::string& name) {
  return absent(name, "the NATS client", "libnats-dev");
}
#endif
#ifndef STREAMVEC_REDIS
Result<std::unique_ptr<Source>> RedisSource::open(const std::string& name) {
  return absent(name, "hiredis", "libhiredis-dev");
}
#endif
#ifndef STREAMVEC_KAFKA
Result<std::unique_ptr<Source>> KafkaSource::open(const std::string& name) {
  return absent(name, "librdkafka", "librdkafka-dev");
}
#endif

}  // namespace streamvec
