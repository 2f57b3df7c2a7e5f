// Messages of a NATS JetStream: nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT]/STREAM[?...]
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Each message is a record (source/record.h), in the order of the stream's sequence. The position of truth is the
// cursor, not the server: reading begins with the message after it, by a pull consumer made for that, and whatever
// comes a second time is passed over. Settings beside those of RecordFormat:
//   subject=S    only messages of these subjects
//   durable=D    the consumer has this name and stays; it shows what commit() acknowledged. One reader a name.
//   part=K/N     only every Nth message by its sequence, from the Kth on (0 is the first): N readers share a stream.
//                Each is sent all of it; not for work queues
//   shared=1     several readers divide the stream among them (source/splits.h): 64 splits, by sequence; without others
//                it reads all. Each is sent all of it; not for work queues, and without durable= or part=
//   pending=N    of a work queue: how many messages may wait for commit() before the server gives no more (250000)
//   tls=1, ca=F  TLS, trusting the certificates in F
// Streams with limits retention are read without effect on them. From a work queue (retention workqueue), messages go
// when commit() acknowledges them; its consumer is "streamvec" unless durable= names it, and is this source's alone.
// Interest retention gives kFailedPrecondition: there a restart cannot go back to its place.
// No such stream: kNotFound. A server that is away, or was seen and lost its stream: kUnavailable, and it is tried
// again. A stream that ends before the cursor was made anew: kFailedPrecondition. Messages that retention took before
// they were read are noted. A read() that has to connect may outlast its deadline by 2 s.
class NatsSource {
 public:
  // Checks the name only; the server is asked by the first read(). kUnimplemented: built without NATS.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
};

}  // namespace streamvec
