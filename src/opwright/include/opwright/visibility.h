// What the headers of opwright define stays inside the shared object that includes them: two libraries in one process
// may have been built with two releases of them.
#pragma once

#define OPWRIGHT_HIDDEN __attribute__((visibility("hidden")))
