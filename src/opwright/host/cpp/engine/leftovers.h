// Temporary files and folders of processes that were killed.
//
// Each is locked by the process that made it, for as long as it lives: whoever gets the lock may remove it. A lock, and
// no process number: containers that share a folder count their processes each from 1.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/file.h"

namespace opwright::host {

// `prefix`, letters that nobody else has, and `suffix`. Throws std::system_error.
std::string unique_name(std::string_view prefix, std::string_view suffix);

// Locks what this process has just made, until the descriptor is closed. False if somebody took it for a leftover in
// the moment before.
bool lock_as_own(const Descriptor& made);

// Removes what lies in `folder` under names of `unique_name`, belongs to this user and is locked by nobody.
void remove_leftovers(const std::filesystem::path& folder, std::string_view prefix, std::string_view suffix);

}  // namespace opwright::host
