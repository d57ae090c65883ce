#include "program/requests.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "model/inputs.h"
#include "program/npy.h"
#include "program/npz.h"
#include "program/picture.h"

namespace opwright::host {
namespace {

std::string read_file(const std::string& path) {
    std::error_code error;
    std::ifstream file(path, std::ios::binary);
    if (!std::filesystem::is_regular_file(path, error) || !file)
        throw Error(Code::input_unreadable, "the input file " + path + " is not there, or is not yours to read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

at::Tensor from_picture(const std::string& path, const std::string& bytes, const Input& input) {
    const at::Tensor picture = decode_picture("the input file " + path, bytes);
    if (input.image) return prepared("the input file " + path, picture, *input.image);
    if (input.dtype == at::kByte && input.dims.size() == 3) return picture;
    throw Error(Code::input_unreadable, "the input file " + path +
                                            " is a picture, and the bundle does not say how one "
                                            "becomes the input " +
                                            input.name + ": say it in `images` beside the model when it is shipped");
}

at::Tensor read_tensor(const std::string& path, const Input& input) {
    const std::string bytes = read_file(path);
    return is_picture(bytes) ? from_picture(path, bytes, input) : read_npy("the input file " + path, bytes);
}

const Input& input_named(const Model& model, const std::string& name) {
    for (const Input& input : model.inputs())
        if (input.name == name) return input;
    std::string names;
    for (const Input& input : model.inputs()) names += (names.empty() ? "" : ", ") + input.name;
    throw Error(Code::input_unknown, "the input " + name + " is unknown; expected " + names);
}

// A line such as {"inputs": {"image": "a.jpg"}, "output": "a.npz"}; paths begin at the folder of the list.
void read_line(const std::string& line, const std::filesystem::path& folder, Request& request) {
    using Json = nlohmann::json;
    const auto refuse = [](const std::string& why) {
        throw Error(Code::input_unreadable, "the request " + why +
                                                "; expected {\"inputs\": {\"name\": \"file\"}, \"output\": \"file\"}, "
                                                "the output or not");
    };
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("inputs") || !json["inputs"].is_object()) refuse("has no inputs");
    for (const auto& [key, value] : json.items()) {
        if (key == "output" && value.is_string())
            request.output = (folder / value.get<std::string>()).string();
        else if (key != "inputs")
            refuse("has an unknown " + Json(key).dump(-1, ' ', true, Json::error_handler_t::replace));
    }
    for (const auto& [name, file] : json["inputs"].items()) {
        if (!file.is_string()) refuse("has an input that is not a file name");
        request.inputs.push_back(name + "=" + (folder / file.get<std::string>()).string());
    }
}

std::vector<Request> read_list(const std::string& path) {
    std::ifstream file;
    if (path != "-") {
        file.open(path);
        if (!file) throw Error(Code::input_unreadable, "the list of requests " + path + " cannot be read");
    }
    std::istream& lines = path == "-" ? std::cin : file;
    const auto folder = path == "-" ? std::filesystem::path() : std::filesystem::path(path).parent_path();
    std::vector<Request> requests;
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        requests.push_back({"line " + std::to_string(number) + " of " + path, "", {}});
        try {
            read_line(line, folder, requests.back());
        } catch (const Error& error) {
            requests.back().error = error;  // the other lines are answered
        }
    }
    if (requests.empty()) throw Error(Code::input_unreadable, "the list of requests " + path + " is empty");
    return requests;
}

}  // namespace

std::vector<Request> read_requests(const Options& options) {
    if (!options.requests.empty()) return read_list(options.requests);
    return {{"", options.output, options.inputs}};
}

std::vector<at::Tensor> read_inputs(const Request& request, const Model& model) {
    std::map<std::string, at::Tensor> named;
    size_t place = 0;  // of the next input that is given without its name
    const auto add = [&named](const std::string& name, const at::Tensor& tensor) {
        if (!named.emplace(name, tensor).second)
            throw Error(Code::input_unknown, "the input " + name + " is given twice");
    };
    for (const std::string& given : request.inputs) {
        std::string path = given, name;
        std::error_code error;
        if (const auto equals = given.find('=');
            equals != std::string::npos && !std::filesystem::exists(given, error)) {
            name = given.substr(0, equals);
            path = given.substr(equals + 1);
        }
        if (name.empty() && path.ends_with(".npz")) {
            for (const auto& [key, array] : read_npz(path)) add(key, array);
            continue;
        }
        if (name.empty() && place >= model.inputs().size())
            throw Error(Code::input_unknown, "more files are given than the " + std::to_string(model.inputs().size()) +
                                                 " inputs of the model");
        const Input& input = name.empty() ? model.inputs()[place++] : input_named(model, name);
        add(input.name, read_tensor(path, input));
    }
    std::vector<at::Tensor> inputs = inputs_by_name(model.inputs(), named);
    if (model.device() != "cpu")
        for (at::Tensor& input : inputs) input = input.to(at::kCUDA);
    return inputs;
}

}  // namespace opwright::host
