// SHA-256 digests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace opwright::host {

// Returns 64 lowercase hexadecimal digits.
std::string sha256_of(std::string_view bytes);

// The same for a file. Throws Error with `file_missing` if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace opwright::host
