// Command lines, with one argument per line.
#include "program/options.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tests/fuzz/options.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/text.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 37> option_words{
    "--input",   "-i",       "--requests", "--output",  "-o",          "--top-k",
    "--json",    "--verify", "--repeat",   "--warm-up", "--threads",   "--runners",
    "--help",    "-h",       "--",         "-",         "=",           "x=x.npy",
    "--top-k=3", "--json=-", "-ix.npy",    "-i=x.npy",  "--no-verify", "--verify=false",
    "--config",  "[",        "]",          "{}",        "\"",          "'",
    "%%",        "bundle",   "x.npz",      "\xff",      "--stream",    "--memory-limit",
    "1000000000"};

std::string read_options(std::string_view input) {
    return outcome_of({Code::usage}, [input] {
        const std::optional<host::Options> found = parsed_options(input);
        if (!found) return;
        require(found->top_k >= 0 && found->top_k <= 1000000 && found->repeat >= 1 && found->warm_up >= 0 &&
                    found->threads >= 0 && found->threads <= 4096 && found->runners >= 1 && found->runners <= 4096,
                "a number out of range");
        const bool is_asked = !found->inputs.empty() || !found->requests.empty();
        require(int{found->verify} + int{is_asked} + int{found->stream} == 1, "not exactly one mode");
        require(!found->stream || (found->json == "-" && found->output.empty()),
                "a stream that does not answer on standard output");
    });
}

}  // namespace

std::optional<host::Options> parsed_options(std::string_view lines) {
    std::vector<std::string> arguments{"opwright-host"};
    while (!lines.empty()) {
        const size_t end = std::min(lines.find('\n'), lines.size());
        std::string& argument = arguments.emplace_back(lines.substr(0, end));
        argument.resize(std::min(argument.find('\0'), argument.size()));
        lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    return host::parse_options(static_cast<int>(arguments.size()), pointers.data());
}

std::string changed_options(std::string input, Random& random) {
    return changed_text(std::move(input), option_words, random);
}

const Target options{"options", read_options, changed_options};

}  // namespace opwright::fuzz
