#include "engine/unpacked_package.h"

#include <caffe2/serialize/inline_container.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/leftovers.h"
#include "engine/reason.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t chunk_bytes = 1 << 20;

constexpr std::string_view folder_prefix = "opwright-package-";

// Creates the folder in the first writable location, and removes what killed processes left there.
fs::path new_private_folder(Descriptor& lock) {
    const char* chosen = std::getenv("TMPDIR");
    for (const char* parent : {chosen ? chosen : "/tmp", "/tmp", "/var/tmp", "/dev/shm", "."}) {
        if (access(parent, W_OK) != 0) continue;  // including an empty TMPDIR
        remove_leftovers(parent, folder_prefix, "");
        fs::path folder = fs::absolute(parent) / unique_name(folder_prefix, "");
        while (mkdir(folder.c_str(), S_IRWXU) == 0) {
            lock = open_to_read(folder.string(), O_DIRECTORY);
            if (lock_as_own(lock)) return folder;
            rmdir(folder.c_str());
            folder.replace_filename(unique_name(folder_prefix, ""));
        }
    }
    throw std::runtime_error("no folder for temporary files is writable: set TMPDIR to a writable folder");
}

void unpack(caffe2::serialize::PyTorchStreamReader& archive, const std::string& record, const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    std::vector<char> chunk(chunk_bytes);
    auto chunks = archive.createChunkReaderIter(record, archive.getRecordSize(record), chunk.size());
    while (const size_t bytes = chunks.next(chunk.data())) out.write(chunk.data(), static_cast<std::streamsize>(bytes));
    out.close();
    if (!out)
        throw std::runtime_error(file.string() +
                                 " cannot be written: is the disk full? Set TMPDIR to use another folder");
}

bool is_inside(const fs::path& record) {
    const fs::path normal = record.lexically_normal();
    return !normal.empty() && normal.is_relative() && *normal.begin() != "..";
}

// Where PyTorch looks for it; it may not find code in deeper folders.
bool is_compiled_code(std::string_view record) {
    constexpr std::string_view folder = "data/aotinductor/model/";
    return record.starts_with(folder) && record.ends_with(".so") && record.find('/', folder.size()) == record.npos;
}

}  // namespace

void check_package(const std::string& path) {
    try {
        caffe2::serialize::PyTorchStreamReader archive(path);
        const std::vector<std::string> records = archive.getAllRecords();
        for (const std::string& record : records)
            if (!is_inside(record))
                throw std::runtime_error("its record '" + record + "' is a path outside the package");
        if (std::none_of(records.begin(), records.end(), is_compiled_code))
            throw std::runtime_error(
                "it contains no compiled code, and the host does not compile; expected an .so in its folder "
                "data/aotinductor/model");
    } catch (const std::exception& error) {
        throw Error(Code::model_invalid, "model " + path + " cannot be read: " + reason(error));
    }
}

UnpackedPackage::UnpackedPackage(const std::string& path) {
    try {
        caffe2::serialize::PyTorchStreamReader archive(path);
        folder_ = new_private_folder(lock_);
        for (const std::string& record : archive.getAllRecords()) unpack(archive, record, folder_ / record);
    } catch (const std::exception& error) {
        remove();
        throw Error(Code::model_invalid, "model " + path + " cannot be read: " + reason(error));
    }
}

UnpackedPackage::~UnpackedPackage() {
    remove();
}

void UnpackedPackage::remove() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
    lock_ = Descriptor();
}

}  // namespace opwright::host
