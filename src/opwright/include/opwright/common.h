// Functions shared by all sources of a library.
//
// A source that includes opwright's headers defines them inline. opwright's own builds define
// OPWRIGHT_COMMON_ELSEWHERE: the sources then only declare them, and common/common.cpp, compiled once, defines them.
#pragma once

#if defined(OPWRIGHT_COMMON_ELSEWHERE)
#define OPWRIGHT_COMMON
#else
#define OPWRIGHT_COMMON inline
#endif
