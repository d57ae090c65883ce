// Functions that are the same in every source of a library.
//
// A source that includes opwright's headers defines them, inline. opwright's builds define OPWRIGHT_COMMON_ELSEWHERE:
// then sources only declare them, and common/common.cpp, which is compiled once, defines them.
#pragma once

#if defined(OPWRIGHT_COMMON_ELSEWHERE)
#define OPWRIGHT_COMMON
#else
#define OPWRIGHT_COMMON inline
#endif
