#include "bundle/digest.h"

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "engine/file.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

class Sha256 {
  public:
    Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
        require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
    }

    void add(std::string_view bytes) { require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }

    std::string text() {
        std::array<unsigned char, 32> digest{};
        unsigned int size = 0;
        require(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1 && size == digest.size());
        constexpr std::string_view digits = "0123456789abcdef";
        std::string text;
        for (const unsigned char byte : digest) {
            text += digits[byte >> 4];
            text += digits[byte & 15];
        }
        return text;
    }

  private:
    static void require(bool done) {
        if (!done) throw Error(Code::internal, "OpenSSL on this machine cannot compute SHA-256");
    }

    std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
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
