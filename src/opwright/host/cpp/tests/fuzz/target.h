// The fuzz targets: the kinds of input of the host, and how each is read and mutated.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "opwright/host/error.h"
#include "tests/fuzz/random.h"

namespace opwright::fuzz {

struct Target {
    std::string_view name;
    // Runs the host on `input`, which ends where its memory ends. Returns "accepted", or the name of the host's error
    // code; terminates the process for anything else.
    std::string (*read)(std::string_view input);
    // Returns a slightly different input.
    std::string (*changed)(std::string input, Random& random);
};

extern const Target manifest, npy, npz, picture, request_list, stream, options, golden, model, package, bundle;

// All targets.
std::span<const Target* const> targets();

// Records a message. For libraries without instrumentation, only messages show how far an input got in them: a fuzzer
// keeps an input with a new message. Each program defines this function.
void note(std::string_view message);

// Terminates the process, because `what` must never happen.
[[noreturn]] void fail(const std::string& what);

inline void require(bool holds, const std::string& what) {
    if (!holds) fail(what);
}

// Checks that an error has one of `codes`, and that its message is one line of UTF-8.
void require_plain(const Error& error, std::initializer_list<Code> codes);

template <typename Read>
std::string outcome_of(std::initializer_list<Code> codes, const Read& read) {
    try {
        read();
        return "accepted";
    } catch (const Error& error) {
        require_plain(error, codes);
        note(error.what());
        return name_of(error.code());
    } catch (const std::exception& error) {
        fail(std::string("an unexpected exception: ") + error.what());
    }
}

}  // namespace opwright::fuzz
