// Defines what the sources of a library only declare (see opwright/common.h).
//
// The headers come before the .inc files, because a header that the command line includes before this file has already
// declared some of it.
#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#define OPWRIGHT_COMMON_ELSEWHERE
#endif

#include <opwright/box.h>
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/gradient_layout.h>
#include <opwright/parallel/broadcast.h>
#include <opwright/parallel/operands.h>
#include <opwright/parallel/pieces.h>
#include <opwright/registry.h>

// Weak, like inline functions, so that two libraries can be linked together.
#undef OPWRIGHT_COMMON
#define OPWRIGHT_COMMON [[gnu::used]] inline

#include <opwright/common/box.inc>
#include <opwright/common/broadcast.inc>
#include <opwright/common/check.inc>
#include <opwright/common/empty.inc>
#include <opwright/common/gradient_layout.inc>
#include <opwright/common/operands.inc>
#include <opwright/common/pieces.inc>
#include <opwright/common/registry.inc>
