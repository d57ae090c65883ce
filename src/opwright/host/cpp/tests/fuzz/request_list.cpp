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
            require(names.insert(request.name).second, "two requests of one name");
            if (request.error) {
                ++refused;
                require_plain(*request.error, {Code::input_unreadable});
                continue;
            }
            for (const auto& [name, path] : request.inputs)
                require(!path.empty() && path.find('\0') == std::string::npos, "an input without a path");
            require(request.output.find('\0') == std::string::npos, "an output with a NUL");
        }
    });
    return outcome == "accepted" && refused == all ? name_of(Code::input_unreadable) : outcome;
}

// Of one line, most of the time.
std::string changed_request_list(std::string input, Random& random) {
    if (random.one_in(4)) return changed_json(std::move(input), request_words, random);
    const size_t place = random.below(input.size() + 1);
    const size_t start = place == 0 ? 0 : input.rfind('\n', place - 1) + 1;
    const size_t end = std::min(input.find('\n', place), input.size());
    std::string line = changed_json(input.substr(start, end - start), request_words, random);
    if (random.one_in(4)) line += "\n" + line;
    return input.replace(start, end - start, line);
}

}  // namespace

const Target request_list{"request_list", read_request_list, changed_request_list};

}  // namespace opwright::fuzz
