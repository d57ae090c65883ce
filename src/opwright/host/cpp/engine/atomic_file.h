// Files that are there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace opwright::host {

// Whether `bytes` are now the file at `path`; where they are not, nothing is there that was not before.
bool write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace opwright::host
