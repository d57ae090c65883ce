// Reads files to their end without mistaking an error for the end. Does not depend on PyTorch.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace opwright::host {

// Owns a file descriptor; a negative number means none.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }

    int number() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }

  private:
    int number_;
};

inline std::system_error last_error(const std::string& what) {
    return {errno, std::generic_category(), what};
}

// The system's description of an error, as from `strerror`.
inline std::string reason_of(const std::system_error& error) {
    return error.code().message();
}

// Opens a file for reading, without waiting for the writer of a pipe. Throws std::system_error.
inline Descriptor open_to_read(const std::string& path, int flags = 0) {
    Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    if (!file) throw last_error(path);
    return file;
}

inline bool is_regular(const Descriptor& file) {
    struct stat status = {};
    return fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode);
}

// Passes the rest of a file to `take`, in pieces of bounded size: if the file is truncated meanwhile, it is short,
// whereas mapped memory would raise a signal. Throws std::system_error.
template <typename Take>
void read_pieces(int file, const Take& take) {
    std::string piece(size_t{1} << 18, '\0');
    while (true) {
        const ssize_t size = read(file, piece.data(), piece.size());
        if (size == 0) return;
        if (size > 0)
            take(std::string_view(piece.data(), static_cast<size_t>(size)));
        else if (errno != EINTR)
            throw last_error("read");
    }
}

// Returns the rest of a file; stops after the piece that exceeds `most` bytes. Throws std::system_error.
template <typename Bytes = std::string>
Bytes read_all(int file, size_t most = std::numeric_limits<size_t>::max()) {
    Bytes bytes;
    struct stat status = {};
    constexpr size_t least_room = size_t{1} << 16;
    // Only a hint: files in /proc report 0.
    if (fstat(file, &status) == 0 && status.st_size > 0 && static_cast<size_t>(status.st_size) <= most)
        bytes.reserve(static_cast<size_t>(status.st_size) + least_room);
    while (bytes.size() <= most) {
        const size_t before = bytes.size(), room = std::max(bytes.capacity() - before, least_room);
        bytes.resize(before + room);
        const ssize_t size = read(file, bytes.data() + before, room);
        bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(size, 0)));
        if (size == 0) break;
        if (size < 0 && errno != EINTR) throw last_error("read");
    }
    return bytes;
}

// Writes all of `bytes`. Throws std::system_error.
inline void write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t size = write(file, bytes.data(), bytes.size());
        if (size >= 0)
            bytes.remove_prefix(static_cast<size_t>(size));
        else if (errno != EINTR)
            throw last_error("write");
    }
}

}  // namespace opwright::host
