// Lists of requests.
#include <array>
#include <set>

#include "program/requests.h"
#include "tests/fuzz/json.h"
#include "tests/fuzz/target.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 26> request_words{"inputs",
                                                         "output",
                                                         "x",
                                                         "y",
                                                         "x.npy",
                                                         "both.npz",
                                                         "a.npz",
                                                         "./a.npz",
                                                         "b/../a.npz",
                                                         "../a.npz",
                                                         "/",
                                                         "",
                                                         ".",
                                                         "..",
                                                         "\xc3\xa9",
                                                         "\xff",
                                                         "\\u0000",
                                                         "\\ud800",
                                                         "{\"inputs\": {\"x\": \"x.npy\"}}",
                                                         "{\"inputs\": {\"\": \"both.npz\"}, \"output\": \"c.npz\"}",
                                                         "\n",
                                                         "\r\n",
                                                         "\"",
                                                         "null",
                                                         "{}",
                                                         "[]"};

std::string read_request_list(std::string_view input) {
    size_t refused = 0, all = 0;
    const std::string outcome = outcome_of({Code::input_unreadable}, [&] {
        std::set<std::string> names;
        for (const host::Request& request : host::parse_requests("list.jsonl", input)) {
            ++all;
            require(names.insert(request.name).second, "two requests with the same name");
            if (request.error) {
                ++refused;
                require_plain(*request.error, {Code::input_unreadable});
                continue;
            }
            for (const host::InputFile& file : request.inputs)
                require(!file.path.empty() && file.path.find('\0') == std::string::npos, "an input without a path");
            require(request.output.find('\0') == std::string::npos, "an output with a NUL");
        }
    });
    return outcome == "accepted" && refused == all ? name_of(Code::input_unreadable) : outcome;
}

std::string changed_request_list(std::string input, Random& random) {
    return changed_json_lines(std::move(input), request_words, random);
}

}  // namespace

const Target request_list{"request_list", read_request_list, changed_request_list};

}  // namespace opwright::fuzz
