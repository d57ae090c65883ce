// Lists of requests.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "program/requests.h"

namespace opwright::host {
namespace {

[[noreturn]] void refuse_request(const std::string& why) {
    throw Error(Code::input_unreadable, "the request " + why +
                                            "; expected {\"inputs\": {\"name\": \"file\"}, \"output\": \"file\"}, "
                                            "the output or not");
}

std::string in_quotes(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Finds a key that comes twice in an object: the parser would silently take the second.
class Keys : public nlohmann::json::json_sax_t {
  public:
    std::string twice;

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(size_t) override {
        open_.emplace_back();
        return true;
    }
    bool end_object() override {
        open_.pop_back();
        return true;
    }
    bool start_array(size_t) override { return true; }
    bool end_array() override { return true; }
    bool key(string_t& name) override {
        if (open_.back().insert(name).second) return true;
        twice = in_quotes(name);
        return false;
    }
    bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  private:
    std::vector<std::set<std::string>> open_;
};

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
    Keys keys;
    nlohmann::json::sax_parse(line, &keys);
    if (!keys.twice.empty()) refuse_request("has the key " + keys.twice + " twice");
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
