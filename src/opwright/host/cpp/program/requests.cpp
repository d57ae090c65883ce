#include "program/requests.h"

#include <filesystem>
#include <map>
#include <new>

#include "engine/file.h"
#include "engine/reason.h"
#include "model/inputs.h"
#include "program/npy.h"
#include "program/npz.h"
#include "program/picture.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

std::string read_file(const std::string& path) {
    try {
        const Descriptor file = open_to_read(path);
        if (!is_regular(file)) refuse_input("the input file " + path, "it is not a file");
        return read_all(file.number());
    } catch (const std::system_error& error) {
        refuse_input("the input file " + path, reason_of(error));
    } catch (const std::bad_alloc&) {
        refuse_input("the input file " + path, "it is larger than memory");
    }
}

// The content of a file, or the bytes that replace it.
std::string_view content_of(const InputFile& file, std::string& memory) {
    if (file.size) return file.bytes;
    return memory = read_file(file.path);
}

at::Tensor from_picture(const std::string& what, std::string_view bytes, const Input& input) {
    const at::Tensor picture = decode_picture(what, bytes);
    if (input.image) return prepared(what, picture, *input.image);
    if (input.dtype == at::kByte && input.dims.size() == 3) return picture;
    throw Error(Code::input_unreadable,
                what + " is a picture, but the bundle does not specify how one becomes the input " + input.name +
                    ": add it to `images` next to the model, and ship it again");
}

at::Tensor read_tensor(const InputFile& file, const Input& input) {
    std::string memory;
    const std::string what = name_in_messages(file);
    const std::string_view bytes = content_of(file, memory);
    if (is_picture(bytes)) return from_picture(what, bytes, input);
    if (is_npy(bytes)) return read_npy(what, bytes);
    refuse_input(what, "it is not an .npy, JPEG or PNG file");
}

const Input& input_named(const Model& model, const std::string& name) {
    for (const Input& input : model.inputs())
        if (input.name == name) return input;
    std::string names;
    for (const Input& input : model.inputs()) names += (names.empty() ? "" : ", ") + input.name;
    throw Error(Code::input_unknown, "the input " + name + " is unknown; expected " + names);
}

std::string read_list(const std::string& path) {
    try {
        if (path == "-") return read_all(STDIN_FILENO);
        const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));  // may be a pipe
        if (!file) throw last_error(path);
        return read_all(file.number());
    } catch (const std::system_error& error) {
        throw Error(Code::input_unreadable, "the list of requests " + path + " cannot be read: " + reason_of(error));
    }
}

// Parses FILE, or NAME=FILE if no file has that whole name.
InputFile input_file(const std::string& given) {
    std::error_code error;
    const auto equals = given.find('=');
    if (equals == std::string::npos || std::filesystem::exists(given, error)) return {"", given};
    return {given.substr(0, equals), given.substr(equals + 1)};
}

}  // namespace

std::string name_in_messages(const InputFile& file) {
    if (!file.size) return "the input file " + file.path;
    return file.name.empty() ? "the content of the .npz" : "the content of the input " + file.name;
}

std::vector<Request> read_requests(const Options& options) {
    if (!options.requests.empty()) return parse_requests(options.requests, read_list(options.requests));
    Request request;
    request.output = options.output;
    for (const std::string& given : options.inputs) request.inputs.push_back(input_file(given));
    return {request};
}

std::vector<at::Tensor> read_inputs(const Request& request, const Model& model) {
    std::map<std::string, at::Tensor> named;
    size_t place = 0;  // of the next input given without a name
    const auto add = [&named](const std::string& name, const at::Tensor& tensor) {
        if (!named.emplace(name, tensor).second)
            throw Error(Code::input_unknown, "the input " + name + " is given twice");
    };
    for (const InputFile& file : request.inputs) {
        const std::string& name = file.name;
        if (name.empty() && (file.size || file.path.ends_with(".npz"))) {
            std::string memory;
            for (const auto& [key, array] : read_npz(name_in_messages(file), content_of(file, memory))) add(key, array);
            continue;
        }
        if (name.empty() && place >= model.inputs().size())
            throw Error(Code::input_unknown, "more files are given than the " + std::to_string(model.inputs().size()) +
                                                 " inputs of the model");
        const Input& input = name.empty() ? model.inputs()[place++] : input_named(model, name);
        add(input.name, read_tensor(file, input));
    }
    std::vector<at::Tensor> inputs = inputs_by_name(model.inputs(), named);
    if (model.device() == "cpu") return inputs;
    try {
        for (at::Tensor& input : inputs) input = input.to(at::kCUDA);
    } catch (const std::exception& error) {
        throw Error(Code::run_failed, "the inputs cannot be copied to the GPU: " + reason(error));
    }
    return inputs;
}

}  // namespace opwright::host
