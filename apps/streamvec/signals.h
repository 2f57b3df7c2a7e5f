// Ctrl-C, SIGTERM and the end of the terminal as a wish to stop.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace streamvec::cli {

// From now on the first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as under nohup) sets the flag that is
// returned (and writes `said`, which must live on, to standard error), and a SIGINT half a second or more after it ends
// the program at once with 130. Nearer ones are taken for the same wish, because `timeout` and `make` send a signal
// twice: to the process and to its group. A SIGTERM that has waited since the program began (start_program) comes now.
inline constexpr char kSaving[] = "\nstopping: the model is being saved (Ctrl-C again leaves at once)\n";
const std::atomic<bool>& stop_on_signals(const char* said = kSaving);

// The wish to stop for a process that calls stop_on_signals(), as a SIGTERM of which it says nothing: who sends it has
// told the user, or has a reason to end it that is no wish of the user's.
void stop_quietly(pid_t process);

// Writes to a pipe without reader fail instead of killing the program.
void ignore_broken_pipes();

}  // namespace streamvec::cli
