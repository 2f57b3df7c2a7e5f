// Entries of a Redis Stream: redis://[[USER]:PASSWORD@]HOST[:PORT]/KEY[?...]
#pragma once

#include <memory>
#include <string>

#include "streamvec/core/status.h"
#include "streamvec/source/source.h"

namespace streamvec {

// Each entry has a record (source/record.h) in one of its fields. The position of truth is the cursor, an entry's id:
// reading goes on after it. Settings beside those of RecordFormat:
//   field=F      the field that holds the record; * makes a JSON object of all fields. Default: text, else data, else
//                the only one
//   group=G      reads as the group G (made if it is not there), for others to see how far it is: the group is set to
//                the cursor at the start, and commit() acknowledges (XACK). It is this source's alone, but for
//                shared=1.
//   consumer=C   its name in the group (streamvec)
//   shared=1     several readers, each with a consumer= of its own, share the group: Redis gives each entry to one of
//                them. The group stays where it is; what this consumer was given and did not acknowledge comes again,
//                after the cursor. What a consumer was given that never comes back stays with it (XAUTOCLAIM).
//   db=N         the database (0)
//   tls=1, ca=F  TLS, trusting the certificates in F
// Without a group the stream is only looked at. A key that is not there is waited for, and noted. Entries that were
// trimmed or deleted before they were read are noted (Redis 7). A server that is away: kUnavailable, and it is tried
// again. kFailedPrecondition: the key is no stream, or a stream that ends before the cursor, so one made anew.
// A read() waits at most 5 s longer than its deadline for a server that has stopped answering.
class RedisSource {
 public:
  // Checks the name only; the server is asked by the first read(). kUnimplemented: built without hiredis.
  static Result<std::unique_ptr<Source>> open(const std::string& name);
};

}  // namespace streamvec
