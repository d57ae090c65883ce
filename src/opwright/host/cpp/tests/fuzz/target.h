// The fuzz targets: the kinds of input of the host, how each is read, and how each is changed.
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
    // Has the host read `input`, which ends where its memory ends. Returns "accepted", or the name of the code of the
    // host's error; ends the process where it is neither.
    std::string (*read)(std::string_view input);
    // Another input, a little different.
    std::string (*changed)(std::string input, Random& random);
};

extern const Target manifest, npy, npz, picture, request_list, stream, options, golden, model, package, bundle;

// All of them.
std::span<const Target* const> targets();

// What libraries that were built without instrumentation say is all that shows how far an input came in them: a fuzzer
// keeps an input with a new message. A program defines it.
void note(std::string_view message);

// Ends the process: `what` should never be.
[[noreturn]] void fail(const std::string& what);

inline void require(bool holds, const std::string& what) {
    if (!holds) fail(what);
}

// An error has one of `codes`, and is one line of UTF-8.
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
        fail(std::string("it threw something else: ") + error.what());
    }
}

}  // namespace opwright::fuzz
