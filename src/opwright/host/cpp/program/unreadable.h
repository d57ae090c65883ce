// How every reader of input files refuses one.
#pragma once

#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// `what` names the file, or the array in it. Throws Error with `input_unreadable`.
[[noreturn]] inline void refuse_input(const std::string& what, const std::string& why) {
    throw Error(Code::input_unreadable, what + " cannot be read: " + why);
}

}  // namespace opwright::host
