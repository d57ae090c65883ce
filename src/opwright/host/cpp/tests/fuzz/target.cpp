#include "tests/fuzz/target.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

namespace opwright::fuzz {

std::span<const Target* const> targets() {
    static constexpr std::array all{&manifest, &npy,    &npz,   &picture, &request_list, &stream,
                                    &options,  &golden, &model, &package, &bundle};
    return all;
}

void fail(const std::string& what) {
    std::cerr << "fuzz: " << what << std::endl;
    std::abort();
}

void require_plain(const Error& error, std::initializer_list<Code> codes) {
    const std::string message = error.what();
    require(std::find(codes.begin(), codes.end(), error.code()) != codes.end(),
            std::string("an error has the code ") + name_of(error.code()) + ": " + message);
    for (const char letter : message)
        require(static_cast<unsigned char>(letter) >= 32 && letter != 127,
                "a message that is not one plain line: " + message);
    try {
        (void)nlohmann::json(message).dump();
    } catch (const nlohmann::json::exception&) {
        fail("a message that is not UTF-8: " + message);
    }
}

}  // namespace opwright::fuzz
