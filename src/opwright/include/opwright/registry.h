// Registers with torch everything that a shared object defines when it is loaded, and unregisters it on unload.
//
// The blocks of OPWRIGHT_LIBRARY and OPWRIGHT_IMPL are first collected from all sources of the shared object, then
// compared with each other, then registered one namespace at a time, completely or not at all. Nothing here throws: an
// exception from a static initializer would terminate the process inside dlopen.
#pragma once

#include <opwright/block.h>
#include <opwright/schema.h>
#include <opwright/types.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <string_view>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

using BoxedKernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

struct Implementation {
    std::string_view name;
    const char* key;
    BoxedKernel call;
    const Signature* signature;
    SourceLocation location;
};

// Defines an operator with the schema of its kernel: "name(Tensor arg0, int arg1) -> Tensor".
OPWRIGHT_COMMON void add_definition_of(Namespace& into, std::string_view name, const Signature& kernel,
                                       const SourceLocation& location);

OPWRIGHT_COMMON void add_implementation(Namespace& into, const Implementation& kernel);

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/registry.inc>
#endif
