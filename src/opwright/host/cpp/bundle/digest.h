// SHA-256.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace opwright::host {

// 64 hexadecimal digits in lower case.
std::string sha256_of(std::string_view bytes);

// The same of a file. Throws Error with `file_missing` where it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace opwright::host
