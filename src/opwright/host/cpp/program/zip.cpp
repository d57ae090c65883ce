#include "program/zip.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opwright::host {
namespace {

template <typename Stream>
Stream& as(voidpf stream) {
    return *static_cast<Stream*>(stream);
}

// There is only one stream, which minizip passes to each function.
voidpf open_stream(voidpf stream, const void*, int) {
    return stream;
}

int close_stream(voidpf, voidpf) {
    return 0;
}

uLong read_source(voidpf, voidpf stream, void* into, uLong size) {
    auto& [bytes, place] = as<ZipSource>(stream);
    const uint64_t left = bytes.size() - std::min<uint64_t>(place, bytes.size());
    const auto taken = static_cast<uLong>(std::min<uint64_t>(size, left));
    if (taken > 0) std::memcpy(into, bytes.data() + place, taken);
    place += taken;
    return taken;
}

ZPOS64_T tell_source(voidpf, voidpf stream) {
    return as<ZipSource>(stream).place;
}

long seek_source(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    auto& [bytes, place] = as<ZipSource>(stream);
    const uint64_t start = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                           : origin == ZLIB_FILEFUNC_SEEK_CUR ? place
                                                              : bytes.size();
    if (offset > bytes.size() || start > bytes.size() - offset) return -1;
    place = start + offset;
    return 0;
}

uLong write_nothing(voidpf, voidpf, const void*, uLong) {
    return 0;
}

int no_error(voidpf, voidpf) {
    return 0;
}

uLong read_nothing(voidpf, voidpf, void*, uLong) {
    return 0;
}

uLong write_target(voidpf, voidpf stream, const void* from, uLong size) {
    auto& [file, place, error] = as<ZipTarget>(stream);
    uLong done = 0;
    while (done < size && error == 0) {
        const ssize_t written = pwrite(file, static_cast<const char*>(from) + done, size - done, place);
        if (written < 0 && errno != EINTR) error = errno;
        if (written <= 0) continue;
        done += static_cast<uLong>(written);
        place += written;
    }
    return done;
}

ZPOS64_T tell_target(voidpf, voidpf stream) {
    return static_cast<ZPOS64_T>(as<ZipTarget>(stream).place);
}

long seek_target(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    auto& [file, place, error] = as<ZipTarget>(stream);
    struct stat status = {};
    if (origin == ZLIB_FILEFUNC_SEEK_END && fstat(file, &status) != 0) return -1;
    const int64_t start = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                          : origin == ZLIB_FILEFUNC_SEEK_CUR ? place
                                                             : status.st_size;
    place = start + static_cast<int64_t>(offset);
    return 0;
}

int target_error(voidpf, voidpf stream) {
    return as<ZipTarget>(stream).error;
}

}  // namespace

unzFile open_zip(ZipSource& source) {
    zlib_filefunc64_def functions = {open_stream, read_source,  write_nothing, tell_source,
                                     seek_source, close_stream, no_error,      &source};
    return unzOpen2_64(nullptr, &functions);
}

zipFile create_zip(ZipTarget& target) {
    zlib_filefunc64_def functions = {open_stream, read_nothing, write_target, tell_target,
                                     seek_target, close_stream, target_error, &target};
    return zipOpen2_64(nullptr, APPEND_STATUS_CREATE, nullptr, &functions);
}

}  // namespace opwright::host
