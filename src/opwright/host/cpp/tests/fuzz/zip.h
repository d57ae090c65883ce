// ZIP archives, taken apart and put together again with the checksums and sizes that they need to be read.
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

// Empty where minizip does not read it to its end.
std::optional<std::vector<Entry>> unzipped(std::string_view archive);

// Stored, in order, and whole.
std::string zipped(const std::vector<Entry>& entries);

using Change = std::function<std::string(std::string bytes, const std::string& name, Random& random)>;

// One change: of what is in an entry, made by `change`; of the entries; or of what the archive says of them.
std::string changed_zip(const std::string& archive, const Change& change, Random& random);

}  // namespace opwright::fuzz
