// Defines what the sources of a library only declare (see opwright/common.h).
#undef OPWRIGHT_COMMON_ELSEWHERE
#define OPWRIGHT_COMMON_HERE

#include <opwright/box.h>
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/gradient_layout.h>
#include <opwright/parallel/broadcast.h>
#include <opwright/parallel/operands.h>
#include <opwright/registry.h>
