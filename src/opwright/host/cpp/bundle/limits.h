// The limits of a manifest. src/opwright/bundle/format/limits.py defines the same numbers under the same names, and a
// test compares the two, so that the host can read what `opwright ship` writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opwright::host::limits {

constexpr int64_t format = 3;
constexpr uintmax_t manifest_bytes = 4194304;
constexpr size_t text_bytes = 255;
// The schema of an operator with many arguments is longer than other texts.
constexpr size_t schema_bytes = 65536;
constexpr size_t list_length = 4096;
constexpr size_t rank = 64;
constexpr int64_t resize = 65536;

}  // namespace opwright::host::limits
