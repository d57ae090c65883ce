// Lists what one source defines or implements; it is registered when the shared object is loaded.
//
// This header includes nothing from torch or the standard library, so that generated sources compile quickly.
#pragma once

#include <opwright/common.h>
#include <opwright/visibility.h>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// Everything that one shared object defines or implements in one namespace.
struct Namespace;

struct SourceLocation {
    const char* file;
    const char* line;
};

// One OPWRIGHT_LIBRARY or OPWRIGHT_IMPL in a source.
struct Block {
    const char* ns;
    const char* key;  // null for a library
    void (*body)(Namespace& into, const Block& block);
    SourceLocation location;
    Block* next = nullptr;
};

inline Block* blocks = nullptr;

// Defines an operator.
OPWRIGHT_COMMON void add_definition(Namespace& into, const char* schema, const SourceLocation& location);

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#define OPWRIGHT_JOIN_(a, b) a##b
#define OPWRIGHT_JOIN(a, b) OPWRIGHT_JOIN_(a, b)
#define OPWRIGHT_STRING_(a) #a
#define OPWRIGHT_STRING(a) OPWRIGHT_STRING_(a)

// Collects a block, with the function that fills it.
#define OPWRIGHT_BLOCK(ns, key, id, ...)                                                     \
    static ::opwright::detail::Block OPWRIGHT_JOIN(opwright_block_, id){                     \
        OPWRIGHT_STRING(ns), key, __VA_ARGS__, {__FILE__, OPWRIGHT_STRING(__LINE__)}};       \
    __attribute__((constructor(65000))) static void OPWRIGHT_JOIN(opwright_collect_, id)() { \
        OPWRIGHT_JOIN(opwright_block_, id).next = ::opwright::detail::blocks;                \
        ::opwright::detail::blocks = &OPWRIGHT_JOIN(opwright_block_, id);                    \
    }

// The exported symbol lets a loader find the namespace before it opens the shared object.
#define OPWRIGHT_SHOW_NAMESPACE(ns)                                                                        \
    extern "C" {                                                                                           \
    extern const char OPWRIGHT_JOIN(opwright_defines_, ns)[] __attribute__((weak, visibility("default"))); \
    const char OPWRIGHT_JOIN(opwright_defines_, ns)[] = __FILE__ ":" OPWRIGHT_STRING(__LINE__);            \
    }

// Defines the operators of a namespace by their schemas, without kernels: OPWRIGHT_DEFINE(ns, "f(Tensor x) -> Tensor",
// ...). Like OPWRIGHT_LIBRARY, use it once per shared object.
#define OPWRIGHT_DEFINE(ns, ...)                                                                     \
    OPWRIGHT_SHOW_NAMESPACE(ns)                                                                      \
    OPWRIGHT_BLOCK(ns, nullptr, __COUNTER__,                                                         \
                   [](::opwright::detail::Namespace& into, const ::opwright::detail::Block& block) { \
                       const char* const schemas[] = {__VA_ARGS__};                                  \
                       for (const char* schema : schemas) {                                          \
                           ::opwright::detail::add_definition(into, schema, block.location);         \
                       }                                                                             \
                   })

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/registry.h>
#endif
