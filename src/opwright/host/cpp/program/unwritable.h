// How an output that cannot be written is reported.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "opwright/host/error.h"

namespace opwright::host {

// Throws Error with `output_unwritable`.
[[noreturn]] inline void throw_unwritable(const std::string& path, const std::system_error& error) {
    const int number = error.code().value();
    const bool is_place =
        number == ENOENT || number == ENOTDIR || number == EACCES || number == EPERM || number == EISDIR;
    throw Error(Code::output_unwritable, "the output " + path + " cannot be written: " +
                                             (is_place            ? "does its folder exist, and is it writable?"
                                              : number == ENOTSUP ? "it is a device, a pipe or a socket, not a file"
                                                                  : error.code().message()));
}

}  // namespace opwright::host
