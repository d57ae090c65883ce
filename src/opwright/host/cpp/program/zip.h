// I/O functions with which minizip reads archives in memory and writes them to files.
#pragma once

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <cstdint>
#include <string_view>

namespace opwright::host {

// The bytes of an archive, and minizip's position in them.
struct ZipSource {
    std::string_view bytes;
    uint64_t place = 0;
};

// Returns null if it is not an archive. `source` must outlive the result.
unzFile open_zip(ZipSource& source);

// A file that an archive is written to. `error` is the errno of the first failed write.
struct ZipTarget {
    int file = -1;
    int64_t place = 0;
    int error = 0;
};

// `target` must outlive the result.
zipFile create_zip(ZipTarget& target);

}  // namespace opwright::host
