#include "engine/atomic_file.h"

#include <filesystem>
#include <fstream>

namespace opwright::host {

bool write_file_atomically(const std::string& path, std::string_view bytes) {
    const std::string part = path + ".part";  // renamed when complete: nobody sees half a file
    std::ofstream file(part, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(part, path, error);
    if (file && !error) return true;
    std::filesystem::remove(part, error);
    return false;
}

}  // namespace opwright::host
