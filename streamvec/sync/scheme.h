// A synchronisation scheme is a rule of admission (when changes that arrive are taken in), a combiner and a codec.
#pragma once

#include <cstdint>
#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/sync/codec.h"
#include "streamvec/sync/combiner.h"

namespace streamvec {

enum class Admission {
  kBsp,       // a round is complete when every worker's changes are there
  kBackup,    // ... when all but `backups` are; what comes later is dropped (Chen et al. 2016)
  kSsp,       // at once; a worker waits while it is more than `staleness` clocks ahead of the slowest (Ho et al. 2013)
  kSoftsync,  // every `group` of them together, each divided by its staleness (Zhang et al. 2016)
  kAsync,     // at once, and nobody waits (Downpour: Dean et al. 2012)
};

struct Scheme {
  Admission admission = Admission::kBsp;
  Combine combine = Combine::kDamped;
  CodecKind codec = CodecKind::kOneBit;
  bool finds_codec = false;  // of kFourBit: one bit a value where the wire is slow (cluster/codec_finder.h)
  int32_t backups = 1;       // of kBackup
  int64_t staleness = 2;     // of kSsp; more: waits less, and learns from older rows
  int32_t group = 2;         // of kSoftsync; more: fewer, steadier steps
  bool adaptive = false;     // of kSsp: every node finds its own staleness (cluster/staleness_finder.h)

  // Rounds have one state for all workers; the others answer each worker with what it has missed.
  bool in_rounds() const { return admission == Admission::kBsp || admission == Admission::kBackup; }
  // Workers wait for the slowest of them, and its owners know when. Not so where some may be left behind, or where each
  // worker knows for itself how long it waits.
  bool awaits_all() const { return admission == Admission::kBsp || (admission == Admission::kSsp && !adaptive); }
  // An owner that answers far later than the others gives its rows up and trains on. Not where all wait for the slowest
  // worker: it pushes early because the rows that it owns show that they wait, and would hold them up more without.
  bool retires_slow_owners() const { return !awaits_all(); }
};

// "bsp", "backup", "ssp", "softsync", "async". kInvalidArgument for others, with the list.
Result<Admission> parse_admission(std::string_view name);

}  // namespace streamvec
