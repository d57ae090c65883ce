// Keeps what opwright's headers define inside the shared object that includes them: two libraries in one process may
// have been built with different releases.
#pragma once

#define OPWRIGHT_HIDDEN __attribute__((visibility("hidden")))
