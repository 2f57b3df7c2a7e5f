// The heap: whether memory that is no longer used goes back to the system (a stream, for months) or is kept for the
// next message (a node of a cluster).
#pragma once

namespace streamvec {

// To be called once, early. Blocks of 128 KiB and more come from the system one by one and go back when they are freed.
// Left alone, glibc takes them from the heap once some were freed: tables of words come and go among small blocks that
// stay, each time where there is room enough, and the heap creeps up. No effect where the C library is another.
void return_large_blocks();

// To be called once, early, instead: blocks up to 32 MiB are kept when they are freed. Messages between nodes come and
// go hundreds of times a second; with fresh memory for each, page faults cost more than the arithmetic. Likewise.
void keep_large_blocks();

// What lies free in the heap goes back now. Takes milliseconds; allocation waits meanwhile. Likewise.
void return_free_memory();

}  // namespace streamvec
