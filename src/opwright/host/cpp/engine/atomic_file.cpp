#include "engine/atomic_file.h"

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "engine/leftovers.h"

namespace opwright::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view part_prefix = ".opwright-", part_suffix = ".part";

// Once per folder, because a list may have a hundred thousand outputs.
void tidy_up_once(const std::string& folder) {
    static std::mutex guard;
    static std::set<std::string> tidied;
    const std::lock_guard lock(guard);
    if (tidied.insert(folder).second) remove_leftovers(folder, part_prefix, part_suffix);
}

// Root could otherwise replace /dev/null, or the link /dev/stdout, for all programs.
void require_replaceable(const fs::path& path, const fs::path& folder) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    const std::string place = fs::weakly_canonical(folder, ignored).string();
    const bool is_other_name =
        fs::is_symlink(fs::symlink_status(path, ignored)) && (place == "/dev" || place.starts_with("/proc/"));
    if (fs::is_other(status) || is_other_name)
        throw std::system_error(std::make_error_code(std::errc::not_supported), path.string());
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
    const fs::path parent = fs::path(path_).parent_path();
    const fs::path folder = parent.empty() ? "." : parent;
    require_replaceable(path_, folder);
    tidy_up_once(folder.string());
    do {
        if (file_) unlink(part_.c_str());
        part_ = (folder / unique_name(part_prefix, part_suffix)).string();
        constexpr mode_t as_the_umask_leaves = 0666;
        file_ = Descriptor(open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, as_the_umask_leaves));
        if (!file_) throw last_error(part_);
    } while (!lock_as_own(file_));
}

AtomicFile::~AtomicFile() {
    if (file_) unlink(part_.c_str());
}

void AtomicFile::commit() {
    // Without this, a power loss could leave the name without the content.
    if (fsync(file_.number()) != 0 && errno != EINVAL && errno != EROFS) throw last_error(part_);
    if (std::rename(part_.c_str(), path_.c_str()) != 0) throw last_error(path_);
    file_ = Descriptor();
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
    AtomicFile file(path);
    write_all(file.descriptor(), bytes);
    file.commit();
}

}  // namespace opwright::host
