// One source of an intake and the thread that reads it. Of intake.cc and intake_places.cc only.
#pragma once

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "streamvec/core/durable_file.h"
#include "streamvec/core/json.h"
#include "streamvec/core/random.h"
#include "streamvec/ingest/intake.h"

namespace streamvec {

struct Intake::Reader {
  Reader(std::unique_ptr<Source> its_source, int32_t number, const Options& options)
      : source(std::move(its_source)),
        index(number),
        remote(source->capabilities().remote),
        shared(source->capabilities().shared),
        tokenizer(options.tokenizer),
        random(mix(options.seed, number)),
        withheld(shared && options.divided) {
    statistics.name = read_back(source->name()).get<std::string>();  // paths are any bytes
    keys = read_back(source->keys()).get<std::vector<std::string>>();
    records_of = shared || options.node.empty() ? statistics.name : options.node + '\0' + statistics.name;
  }

  // A hash of the record's name. Never 0, which names no record.
  uint64_t record_of(const std::string& id) {
    record_sum.reset();
    record_sum.update(records_of);
    record_sum.update(std::string_view("\0", 1));
    record_sum.update(id);
    return std::max<uint64_t>(record_sum.value(), 1);
  }

  std::unique_ptr<Source> source;
  std::vector<std::string> keys;  // Source::keys()
  std::string records_of;         // what names of records belong to
  const int32_t index;
  const bool remote, shared;
  std::thread thread;
  // Of its own thread.
  Tokenizer tokenizer;
  Tokens tokens;
  std::vector<Slot> slots, admitted;
  std::vector<uint64_t> stamps;  // of the parts in which a document is mapped
  std::vector<Document> documents;
  std::vector<std::shared_ptr<const ReplayItem>> items;
  Random random;
  Checksum record_sum;
  int32_t tries = 0;  // at a source that has a fault
  // Under the intake's mutex.
  SourceStatistics statistics;
  std::string restored;          // what restore() put it to
  std::string cursor;            // of the last document taken in since then; "" none
  std::string saved_cursor;      // of the last one in the checkpoint under way
  std::string committed_cursor;  // of the last one in a checkpoint that is safe
  std::string told_cursor;       // the last of these that the source has taken
  struct Share {
    std::string cursor;
    Splits splits;
  };
  bool withheld;               // it takes in nothing until ...
  std::optional<Share> share;  // ... this is there and its thread has put the source to it
  int64_t shares = 0;          // how often the two were changed from outside
  bool commit_due = false;
  bool gone = false;   // its thread has done with the source
  bool dated = false;  // a document of it had a date; under the vocabulary's lock
};

}  // namespace streamvec
