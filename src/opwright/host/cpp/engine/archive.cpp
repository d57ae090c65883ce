#include "engine/archive.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include "engine/file.h"
#include "engine/reason.h"

namespace opwright::host {

c10::IValue read_archive(const std::string& what, const std::string& path, Code code) {
    require_file(what, path);
    std::vector<char> bytes;
    try {
        bytes = read_all<std::vector<char>>(open_to_read(path).number());
    } catch (const std::system_error& error) {
        throw Error(Code::file_missing, what + " " + path + " cannot be read: " + reason_of(error));
    }
    try {
        return torch::jit::pickle_load(bytes);
    } catch (const std::exception& error) {
        throw Error(code, what + " " + path + " cannot be read: " + reason(error));
    }
}

std::vector<char> archive_of(const c10::IValue& value) {
    return torch::jit::pickle_save(value);
}

}  // namespace opwright::host
