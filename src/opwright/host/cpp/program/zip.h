// Archives in memory and in files, for minizip, which asks for functions that read and write.
#pragma once

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <cstdint>
#include <string_view>

namespace opwright::host {

// The bytes of an archive, and where minizip is in them.
struct ZipSource {
    std::string_view bytes;
    uint64_t place = 0;
};

// Null if it is none. `source` outlives it.
unzFile open_zip(ZipSource& source);

// A file that an archive is written to. `error` is the system's number of the first write that failed.
struct ZipTarget {
    int file = -1;
    int64_t place = 0;
    int error = 0;
};

// `target` outlives it.
zipFile create_zip(ZipTarget& target);

}  // namespace opwright::host
