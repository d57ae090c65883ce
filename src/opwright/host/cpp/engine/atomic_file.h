// Files that are written completely or not at all.
#pragma once

#include <string>
#include <string_view>

namespace opwright::host {

// Returns whether the file at `path` now holds `bytes`. If not, nothing has changed there.
bool write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace opwright::host
