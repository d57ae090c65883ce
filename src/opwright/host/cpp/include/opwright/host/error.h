// The host's only exception class, and its error codes.
#pragma once

#include <stdexcept>
#include <string>

// The library exports nothing else.
#define OPWRIGHT_HOST_API __attribute__((visibility("default")))

namespace opwright {

// What went wrong. The numbers are also exit codes, and never change.
enum class Code : int {
    internal = 1,
    usage = 2,
    bundle_missing = 20,
    manifest_invalid = 21,
    format_unknown = 22,
    path_outside = 23,
    file_missing = 24,
    file_unexpected = 25,
    file_changed = 26,
    torch_unsupported = 27,
    cpu_unsupported = 28,
    device_unavailable = 29,
    namespace_taken = 30,
    library_refused = 31,
    schema_changed = 32,
    operator_missing = 33,
    kernel_missing = 34,
    model_invalid = 35,
    input_unreadable = 36,
    input_unknown = 37,
    input_dtype = 38,
    input_rank = 39,
    input_size = 40,
    input_device = 41,
    run_failed = 42,
    golden_differs = 43,
    output_unwritable = 44,
};

// The name of a code, as spelled above.
OPWRIGHT_HOST_API const char* name_of(Code code);

// `what()` is one line: what was wrong and what was expected. Quoted external text is sanitized: control characters and
// bidirectional formatting characters become spaces, and bytes that are not UTF-8 become question marks.
class OPWRIGHT_HOST_API Error : public std::runtime_error {
  public:
    Error(Code code, const std::string& message);
    Code code() const noexcept { return code_; }

  private:
    Code code_;
};

}  // namespace opwright
