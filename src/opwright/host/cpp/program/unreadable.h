// How readers reject an input file.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "engine/reason.h"
#include "opwright/host/error.h"

namespace opwright::host {

// `what` names the file, or the array in it. Throws Error with `input_unreadable`.
[[noreturn]] inline void refuse_input(const std::string& what, const std::string& why) {
    throw Error(Code::input_unreadable, what + " cannot be read: " + why);
}

// Returns the result of `read`. A small file can claim any size: if memory is insufficient for it, that is an error of
// the file.
template <typename Read>
auto within_memory(const std::string& what, const Read& read) {
    try {
        return read();
    } catch (const std::bad_alloc&) {
        refuse_input(what, "it is larger than memory");
    } catch (const c10::Error& error) {
        const std::string why = reason(error);
        const bool is_memory = why.find("can't allocate memory") != std::string::npos;
        refuse_input(what, is_memory ? "it is larger than memory" : why);
    }
}

}  // namespace opwright::host
