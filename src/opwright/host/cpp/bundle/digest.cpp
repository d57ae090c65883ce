#include "bundle/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "opwright/host/error.h"

namespace opwright::host {

std::string sha256_of(std::string_view bytes) {
    std::array<unsigned char, 32> digest{};
    unsigned int size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1 ||
        size != digest.size())
        throw Error(Code::internal, "the OpenSSL of this machine cannot compute SHA-256");
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : digest) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::string sha256_of_file(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status = {};
    void* mapped = MAP_FAILED;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0)
        mapped = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (file >= 0) close(file);
    if (file < 0 || (mapped == MAP_FAILED && status.st_size > 0))
        throw Error(Code::file_missing, "the file " + path.string() + " cannot be read");
    const auto size = static_cast<size_t>(status.st_size);
    const std::string digest = sha256_of(size ? std::string_view(static_cast<const char*>(mapped), size) : "");
    if (size) munmap(mapped, size);
    return digest;
}

}  // namespace opwright::host
