// Lists of requests.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "bundle/json.h"
#include "program/requests.h"

namespace opwright::host {
namespace {

// A request needs two.
constexpr size_t deepest_request = 8;

[[noreturn]] void refuse_request(const std::string& why) {
    throw Error(Code::input_unreadable, "the request " + why +
                                            "; expected {\"inputs\": {\"name\": \"file\"}, \"output\": \"file\"}, "
                                            "the output or not");
}

std::string in_quotes(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// A file's path as the list has it, from the list's folder on.
std::string path_in(const nlohmann::json& file, const std::filesystem::path& folder, const std::string& what) {
    if (!file.is_string()) refuse_request("has " + what + " that is not a file name");
    const auto& name = file.get_ref<const std::string&>();
    if (name.empty()) refuse_request("has " + what + " without a file name");
    if (name.find('\0') != std::string::npos) refuse_request("has " + what + " with a NUL in its file name");
    return (folder / name).string();
}

// A line such as {"inputs": {"image": "a.jpg"}, "output": "a.npz"}.
void parse_line(std::string_view line, const std::filesystem::path& folder, Request& request) {
    check_form(
        line, deepest_request,
        {.key_twice = [](const auto& key) { refuse_request("has the key " + in_quotes(key) + " twice"); },
         .too_deep = [] { refuse_request("nests deeper than " + std::to_string(deepest_request) + " levels"); }});
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("inputs") || !json["inputs"].is_object()) refuse_request("has no inputs");
    for (const auto& [key, value] : json.items())
        if (key != "output" && key != "inputs") refuse_request("has an unknown " + in_quotes(key));
    if (json.contains("output")) request.output = path_in(json["output"], folder, "an output");
    for (const auto& [name, file] : json["inputs"].items()) {
        request.inputs.push_back({name, path_in(file, folder, "an input")});
        if (name.empty() && !request.inputs.back().path.ends_with(".npz"))
            refuse_request("has an input without a name, which only an .npz can be");
    }
}

// The same for all names of one file in one folder.
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
    std::map<std::string, std::string> writers;  // the request of each output
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        Request& request = requests.emplace_back();
        request.name = "line " + std::to_string(number) + " of " + path;
        try {
            parse_line(line, folder, request);
            if (request.output.empty()) continue;
            const auto [first, is_first] = writers.emplace(place_of(request.output), std::to_string(number));
            if (!is_first)
                refuse_request("has the output " + request.output + ", which line " + first->second + " has already");
        } catch (const Error& error) {
            request.error = error;  // the other lines are answered
        }
    }
    if (requests.empty()) throw Error(Code::input_unreadable, "the list of requests " + path + " is empty");
    return requests;
}

}  // namespace opwright::host
