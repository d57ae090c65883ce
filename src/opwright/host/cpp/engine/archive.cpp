#include "engine/archive.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <fstream>

#include "engine/reason.h"

namespace opwright::host {

c10::IValue read_archive(const std::string& what, const std::string& path, Code code) {
    require_file(what, path);
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(std::filesystem::file_size(path));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw Error(Code::file_missing, what + " " + path + " cannot be read");
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
