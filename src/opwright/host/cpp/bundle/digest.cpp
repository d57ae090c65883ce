#include "bundle/digest.h"

// SHA256_Init and its siblings are deprecated in favor of EVP, which links all of OpenSSL, and in some builds of
// OpenSSL also zlib and zstd. These need three objects of libcrypto.a, which require only the C library.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>

#include "engine/file.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

class Sha256 {
  public:
    Sha256() { require(SHA256_Init(&context_)); }

    void add(std::string_view bytes) { require(SHA256_Update(&context_, bytes.data(), bytes.size())); }

    std::string text() {
        std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
        require(SHA256_Final(digest.data(), &context_));
        constexpr std::string_view digits = "0123456789abcdef";
        std::string text;
        for (const unsigned char byte : digest) {
            text += digits[byte >> 4];
            text += digits[byte & 15];
        }
        return text;
    }

  private:
    static void require(int done) {
        if (done != 1) throw Error(Code::internal, "OpenSSL on this machine cannot compute SHA-256");
    }

    SHA256_CTX context_;
};

}  // namespace

std::string sha256_of(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.text();
}

std::string sha256_of_file(const std::filesystem::path& path) {
    try {
        const Descriptor file = open_to_read(path.string(), O_NOFOLLOW);
        Sha256 digest;
        read_pieces(file.number(), [&digest](std::string_view piece) { digest.add(piece); });
        return digest.text();
    } catch (const std::system_error& error) {
        throw Error(Code::file_missing, "the file " + path.string() + " cannot be read: " + reason_of(error));
    }
}

}  // namespace opwright::host
