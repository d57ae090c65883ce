// Why a call of torch's C interface failed.
#pragma once

#include <opwright/schema.h>

#include <string_view>

extern "C" {
// torch 2.13 returns its error here; an older torch does not have this function and only prints the error.
__attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
}

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// The first line of torch's last error.
[[gnu::cold, gnu::noinline]] inline std::string_view last_torch_error() {
    const char* what =
        torch_exception_get_what_without_backtrace == nullptr ? nullptr : torch_exception_get_what_without_backtrace();
    const std::string_view message = what == nullptr ? "the reason is on stderr" : what;
    return message.substr(0, message.find('\n'));
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN
