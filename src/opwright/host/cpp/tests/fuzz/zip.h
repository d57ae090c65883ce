// Takes ZIP archives apart, and puts them together again with valid checksums and sizes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

struct Entry {
    std::string name;
    std::string bytes;
};

// Returns nullopt if minizip does not read the archive to its end.
std::optional<std::vector<Entry>> unzipped(std::string_view archive);

// Stores the entries uncompressed and in order, in a valid archive.
std::string zipped(const std::vector<Entry>& entries);

using Change = std::function<std::string(std::string bytes, const std::string& name, Random& random)>;

// Makes one change: to an entry's content, by `change`; to the list of entries; or to the archive's metadata.
std::string changed_zip(const std::string& archive, const Change& change, Random& random);

}  // namespace opwright::fuzz
