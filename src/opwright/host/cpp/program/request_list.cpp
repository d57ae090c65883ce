// Lists of requests.
#include <algorithm>
#include <filesystem>
#include <map>

#include "program/request_line.h"

namespace opwright::host {
namespace {

// Returns the same string for all names of a file in a folder.
std::string place_of(const std::string& output) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(output, error);
    const std::filesystem::path parent = std::filesystem::weakly_canonical(whole.parent_path(), error);
    return ((error ? whole.parent_path() : parent) / whole.filename()).string();
}

}  // namespace

std::vector<Request> parse_requests(const std::string& path, std::string_view text) {
    const auto folder = path == "-" ? std::filesystem::path() : std::filesystem::path(path).parent_path();
    std::vector<Request> requests;
    std::map<std::string, std::string> writers;  // the request that writes each output
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        Request& request = requests.emplace_back();
        request.name = "line " + std::to_string(number) + " of " + path;
        try {
            parse_line_of_list(line, folder, request);
            if (request.output.empty()) continue;
            const auto [first, is_first] = writers.emplace(place_of(request.output), std::to_string(number));
            if (!is_first)
                throw Error(Code::input_unreadable, "the request has the output " + request.output + ", which line " +
                                                        first->second +
                                                        " already has; expected a separate file for each line");
        } catch (const Error& error) {
            request.error = error;  // the other lines are still answered
        }
    }
    if (requests.empty()) throw Error(Code::input_unreadable, "the list of requests " + path + " is empty");
    return requests;
}

}  // namespace opwright::host
