// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opwright::host {

struct Options {
    std::string bundle;
    std::vector<std::string> inputs;  // FILE, or NAME=FILE
    std::string requests;             // a list of further requests; - is standard input
    std::string output;
    int top_k = 0;
    std::string json;  // where to write JSON; - is standard output, empty is nowhere
    bool verify = false;
    int repeat = 1;
    int warm_up = 2;
    int threads = 0;  // 0: PyTorch's default
    int runners = 1;
    bool stream = false;        // answer requests from standard input as they arrive; `json` is - then
    uint64_t memory_limit = 0;  // in bytes; 0: the system's limit
};

// Returns nullopt after printing the help. Throws Error with `usage`.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace opwright::host
