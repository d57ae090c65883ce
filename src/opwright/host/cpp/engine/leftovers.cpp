#include "engine/leftovers.h"

#include <sys/file.h>
#include <sys/random.h>

#include <array>

namespace opwright::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t name_length = 12;

bool is_ours(std::string_view name, std::string_view prefix, std::string_view suffix) {
    if (name.size() != prefix.size() + name_length + suffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(suffix))
        return false;
    return name.substr(prefix.size(), name_length).find_first_not_of(letters) == std::string_view::npos;
}

// Whether the name still refers to the open file.
bool is_same(const struct stat& open, const fs::path& path) {
    struct stat named = {};
    return lstat(path.c_str(), &named) == 0 && named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

void remove_if_left(const fs::path& path) {
    const Descriptor found(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status = {};
    if (!found || fstat(found.number(), &status) != 0 || status.st_uid != geteuid()) return;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return;
    if (flock(found.number(), LOCK_EX | LOCK_NB) != 0 || !is_same(status, path)) return;
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

}  // namespace

std::string unique_name(std::string_view prefix, std::string_view suffix) {
    std::array<unsigned char, name_length> random{};
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        throw last_error("getrandom");
    std::string name(prefix);
    for (const unsigned char byte : random) name += letters[byte % letters.size()];
    return name.append(suffix);
}

bool lock_as_own(const Descriptor& made) {
    // On a file system without locks, no process gets one, and nothing is treated as a leftover.
    if (flock(made.number(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    struct stat status = {};
    return fstat(made.number(), &status) == 0 && status.st_nlink > 0;
}

void remove_leftovers(const fs::path& folder, std::string_view prefix, std::string_view suffix) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (is_ours(entry->path().filename().string(), prefix, suffix)) remove_if_left(entry->path());
}

}  // namespace opwright::host
