// Messages of a Kafka topic: kafka://[USER:PASSWORD@]HOST[:PORT]/TOPIC[?...]
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Each message is a record (source/record.h); its key is the document's id where the record has none of its own, and a
// message with a key and nothing else (a tombstone) withdraws what the key names. All partitions are read, each in its
// order, by hand: no group decides who reads what. The position of truth is the cursor, the next offset of each
// partition. Settings beside those of RecordFormat:
//   group=G      commit() also tells the broker how far the group G is, for others to see; nothing is read from there
//   part=K/N     only every Nth partition, from the Kth on (0 is the first): N readers share a topic
//   shared=1     several readers divide the partitions among them (source/splits.h); without others it reads all
//   tls=1, ca=F  TLS, trusting the certificates in F
//   sasl=M       how USER and PASSWORD are shown: PLAIN (the default), SCRAM-SHA-256, SCRAM-SHA-512
//   A.B=V        any key with a dot is given to librdkafka as it is
// Partitions that are added later are found within a minute. Messages that retention took before they were read are
// noted. No such topic: kNotFound. Brokers that are away: kUnavailable; librdkafka comes back to them by itself.
// Offsets past a partition's end: kFailedPrecondition, as the topic was made anew. Memory: 16 MiB fetched ahead. A
// read() that has to ask for the partitions may outlast its deadline by 2 s.
class KafkaSource {
 public:
  // Checks the name only; brokers are asked by the first read(). kUnimplemented: built without librdkafka.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
};

}  // namespace streamvec
