#include "program/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "opwright/host/error.h"
#include "program/npy.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

constexpr std::string_view suffix = ".npy";
// A small file can unpack to any size.
constexpr uint64_t largest = uint64_t{1} << 36;

std::string read_entry(unzFile file, const std::string& what) {
    if (unzOpenCurrentFile(file) != UNZ_OK) refuse_input(what, "its archive is damaged");
    // In pieces: what the archive says of an entry's size need not be true.
    std::string bytes;
    std::vector<char> piece(1 << 20);
    int size = 0;
    while ((size = unzReadCurrentFile(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
        bytes.append(piece.data(), static_cast<size_t>(size));
        if (bytes.size() > largest) refuse_input(what, "an array in it is larger than 64 GiB");
    }
    // Closing compares the checksum.
    if (unzCloseCurrentFile(file) != UNZ_OK || size < 0) refuse_input(what, "its archive is damaged");
    return bytes;
}

}  // namespace

std::map<std::string, at::Tensor> read_npz(const std::string& path) {
    const std::string what = "the input file " + path;
    const std::unique_ptr<void, int (*)(unzFile)> file(unzOpen64(path.c_str()), unzClose);
    if (!file) refuse_input(what, "it is not an .npz file");
    std::map<std::string, at::Tensor> arrays;
    int state = unzGoToFirstFile(file.get());
    for (; state == UNZ_OK; state = unzGoToNextFile(file.get())) {
        std::array<char, 1024> buffer{};
        unz_file_info64 info = {};
        if (unzGetCurrentFileInfo64(file.get(), &info, buffer.data(), buffer.size() - 1, nullptr, 0, nullptr, 0) !=
            UNZ_OK)
            refuse_input(what, "its archive is damaged");
        std::string name = buffer.data();
        if (!name.ends_with(suffix))
            refuse_input(what, "it holds '" + name.substr(0, 40) + "', which is not an .npy file");
        name.resize(name.size() - suffix.size());
        if (arrays.contains(name)) refuse_input(what, "it holds '" + name.substr(0, 40) + "' twice");
        arrays[name] = read_npy("the array " + name + " of " + path, read_entry(file.get(), what));
    }
    if (state != UNZ_END_OF_LIST_OF_FILE) refuse_input(what, "its archive is damaged");
    return arrays;
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& arrays) {
    const std::string part = path + ".part";
    zipFile file = zipOpen64(part.c_str(), APPEND_STATUS_CREATE);
    bool well = file != nullptr;
    for (const auto& [name, tensor] : arrays) {
        const std::string bytes = write_npy(tensor);
        zip_fileinfo info = {};  // without a time: equal outputs give equal files
        well = well && zipOpenNewFileInZip64(file, (name + std::string(suffix)).c_str(), &info, nullptr, 0, nullptr, 0,
                                             nullptr, 0, 0, 1) == ZIP_OK;
        for (size_t at = 0; well && at < bytes.size(); at += 1 << 30) {
            const auto size = static_cast<unsigned>(std::min<size_t>(bytes.size() - at, 1 << 30));
            well = zipWriteInFileInZip(file, bytes.data() + at, size) == ZIP_OK;
        }
        well = well && zipCloseFileInZip(file) == ZIP_OK;
    }
    if (file) well = zipClose(file, nullptr) == ZIP_OK && well;
    std::error_code error;
    if (well) std::filesystem::rename(part, path, error);
    if (well && !error) return;
    std::filesystem::remove(part, error);
    throw Error(Code::output_unwritable, "the output " + path + " cannot be written: is its folder there, and yours?");
}

}  // namespace opwright::host
