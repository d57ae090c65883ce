// Reports when a library or the model ends the program, by a signal or by calling exit.
#pragma once

namespace opwright::host {

// From this call on, such an end prints a line to standard error, and a line of JSON to the descriptor `json` unless it
// is negative. The line names the library being opened, or the request and the operator being run. A signal's exit
// status is kept; an exit becomes an error, regardless of its status.
void announce_early_end(int json);

// Prints the line before the `atexit` handlers that libraries registered in the meantime run.
void announce_early_end_first();

// From this call on, the program may exit.
void end_is_expected();

}  // namespace opwright::host
