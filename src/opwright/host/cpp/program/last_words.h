// What the program says where a library or the model ends it: by a signal, or by calling exit.
#pragma once

namespace opwright::host {

// From here on such an end is a line on standard error, and one of JSON to the descriptor `json`, unless it is below 0.
// It names the library that was being opened, or the request and the operator that ran. The exit status of a signal
// stays that of the signal; an exit is an error, whatever status was asked for.
void announce_early_end(int json);

// The line comes before what libraries have registered with `atexit` meanwhile.
void announce_early_end_first();

// From here on an end is the program's own.
void end_is_expected();

}  // namespace opwright::host
