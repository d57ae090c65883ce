// Returns why a call to torch's C interface failed.
#pragma once

#include <dlfcn.h>
#include <opwright/schema.h>

#include <string_view>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// The first line of torch's last error. torch 2.13 has a function that returns it; older versions only print it. A weak
// reference to the function does not work: mold turns it into an ordinary one, without which the library does not load.
[[gnu::cold, gnu::noinline]] inline std::string_view last_torch_error() {
    using What = const char*();
    auto* const function = reinterpret_cast<What*>(dlsym(RTLD_DEFAULT, "torch_exception_get_what_without_backtrace"));
    const char* what = function == nullptr ? nullptr : function();
    const std::string_view message = what == nullptr ? "the reason is on stderr" : what;
    return message.substr(0, message.find('\n'));
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN
