#include "program/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>

#include "engine/atomic_file.h"
#include "opwright/host/error.h"
#include "program/npy.h"
#include "program/unreadable.h"
#include "program/unwritable.h"
#include "program/zip.h"

namespace opwright::host {
namespace {

constexpr std::string_view suffix = ".npy";
// A small file can unpack to any size.
constexpr uint64_t largest = uint64_t{1} << 36;
constexpr size_t longest_name = 1024;
constexpr uLong utf8_flag = 1 << 11;  // .ZIP File Format Specification, 4.4.4: the name is UTF-8

std::string read_entry(unzFile file, const std::string& what) {
    if (unzOpenCurrentFile(file) != UNZ_OK) refuse_input(what, "its archive is damaged");
    // In pieces, because the size of an entry in the archive may be wrong.
    std::string bytes;
    std::vector<char> piece(1 << 20);
    int size = 0;
    while ((size = unzReadCurrentFile(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
        bytes.append(piece.data(), static_cast<size_t>(size));
        if (bytes.size() > largest) refuse_input(what, "an array in it is larger than 64 GiB");
    }
    // Closing verifies the checksum.
    if (unzCloseCurrentFile(file) != UNZ_OK || size < 0) refuse_input(what, "its archive is damaged");
    return bytes;
}

// The name as UTF-8, which NumPy writes and flags as such; older programs do not flag it.
std::string name_of_entry(unzFile file, const std::string& what) {
    std::string name(longest_name + 1, '\0');
    unz_file_info64 info = {};
    if (unzGetCurrentFileInfo64(file, &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK)
        refuse_input(what, "its archive is damaged");
    if (info.size_filename > longest_name) refuse_input(what, "a name in it is longer than 1,024 bytes");
    name.resize(info.size_filename);
    if (name.find('\0') != std::string::npos) refuse_input(what, "a name in it contains a NUL");
    return name;
}

// Whether unpacking the archive would write outside the target folder. A name such as a/b is inside it.
bool leads_out(std::string_view name) {
    if (name.starts_with('/') || name.find_first_of(":\\") != std::string_view::npos) return true;
    for (size_t start = 0; start <= name.size();) {
        const size_t end = std::min(name.find('/', start), name.size());
        if (name.substr(start, end - start) == "..") return true;
        start = end + 1;
    }
    return false;
}

std::map<std::string, at::Tensor> arrays_in(const std::string& what, std::string_view bytes) {
    ZipSource source{bytes};
    const std::unique_ptr<void, int (*)(unzFile)> file(open_zip(source), unzClose);
    if (!file) refuse_input(what, "it is not an .npz file");
    std::map<std::string, at::Tensor> arrays;
    int state = unzGoToFirstFile(file.get());
    for (; state == UNZ_OK; state = unzGoToNextFile(file.get())) {
        std::string name = name_of_entry(file.get(), what);
        if (!name.ends_with(suffix))
            refuse_input(what, "it contains '" + name.substr(0, 40) + "', which is not an .npy file");
        name.resize(name.size() - suffix.size());
        if (arrays.contains(name)) refuse_input(what, "it contains '" + name.substr(0, 40) + "' twice");
        arrays[name] = read_npy("the array " + name + " of " + what, read_entry(file.get(), what));
    }
    if (state != UNZ_END_OF_LIST_OF_FILE) refuse_input(what, "its archive is damaged");
    return arrays;
}

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char letter) { return static_cast<unsigned char>(letter) < 128; });
}

void write_archive(ZipTarget& target, const std::vector<std::pair<std::string, at::Tensor>>& arrays) {
    const std::unique_ptr<void, int (*)(zipFile)> file(create_zip(target),
                                                       [](zipFile open) { return zipClose(open, nullptr); });
    bool done = file != nullptr;
    for (const auto& [name, tensor] : arrays) {
        const std::string bytes = write_npy(tensor);
        const zip_fileinfo info = {};  // without a timestamp, so that equal outputs produce equal files
        const std::string entry = name + std::string(suffix);
        const uLong flags = is_ascii(entry) ? 0 : utf8_flag;
        // Stored without compression; the remaining arguments, for compression and passwords, are minizip's defaults.
        done = done && zipOpenNewFileInZip4_64(file.get(), entry.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0,
                                               0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr, 0, 0, flags,
                                               1) == ZIP_OK;
        for (size_t at = 0; done && at < bytes.size(); at += 1 << 30) {
            const auto size = static_cast<unsigned>(std::min<size_t>(bytes.size() - at, 1 << 30));
            done = zipWriteInFileInZip(file.get(), bytes.data() + at, size) == ZIP_OK;
        }
        done = done && zipCloseFileInZip(file.get()) == ZIP_OK;
    }
    if (!done && target.error == 0) target.error = EIO;
}

}  // namespace

std::map<std::string, at::Tensor> read_npz(const std::string& what, std::string_view bytes) {
    return within_memory(what, [&] { return arrays_in(what, bytes); });
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& arrays) {
    for (const auto& [name, tensor] : arrays)
        if (leads_out(name))
            throw Error(Code::output_unwritable,
                        "the output " + path + " cannot be written: the array name '" + name +
                            "' is a path outside the archive; rename that output of the model");
    try {
        AtomicFile file(path);
        ZipTarget target{file.descriptor()};
        write_archive(target, arrays);
        if (target.error) throw std::system_error(target.error, std::generic_category(), path);
        file.commit();
    } catch (const std::system_error& error) {
        throw_unwritable(path, error);
    }
}

}  // namespace opwright::host
