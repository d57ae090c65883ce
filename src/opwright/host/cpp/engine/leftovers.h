// Temporary files and folders left behind by killed processes.
//
// The process that creates one locks it for its lifetime: a process that gets the lock may remove it. Process IDs would
// not work, because containers that share a folder each count their processes from 1.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/file.h"

namespace opwright::host {

// Returns `prefix`, a unique part, and `suffix`. Throws std::system_error.
std::string unique_name(std::string_view prefix, std::string_view suffix);

// Locks a file that this process just created, until the descriptor is closed. Returns false if another process treated
// it as a leftover in the meantime.
bool lock_as_own(const Descriptor& made);

// Removes files in `folder` named by `unique_name` that belong to this user and are not locked.
void remove_leftovers(const std::filesystem::path& folder, std::string_view prefix, std::string_view suffix);

}  // namespace opwright::host
