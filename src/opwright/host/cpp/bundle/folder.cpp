#include "bundle/folder.h"

#include <sys/auxv.h>

#include <set>
#include <system_error>

#include "bundle/digest.h"
#include "bundle/limits.h"
#include "engine/file.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* digest_name = "manifest.sha256";

std::string in_bundle(const fs::path& folder, const std::string& name) {
    return name + " of the bundle " + folder.string();
}

fs::file_status status_of(const fs::path& path) {
    std::error_code error;
    return fs::symlink_status(path, error);
}

[[noreturn]] void refuse_link(const fs::path& folder, const std::string& name) {
    throw Error(Code::path_outside, in_bundle(folder, name) + " is a link; expected a regular file");
}

std::string read_small(const fs::path& folder, const std::string& name) {
    const fs::path path = folder / name;
    const fs::file_status status = status_of(path);
    if (fs::is_symlink(status)) refuse_link(folder, name);
    if (!fs::is_regular_file(status)) {
        const Code code = name == manifest_name ? Code::bundle_missing : Code::file_missing;
        throw Error(code, in_bundle(folder, name) + " is missing; expected a folder that `opwright ship` wrote");
    }
    std::string text;
    try {
        text = read_all(open_to_read(path.string(), O_NOFOLLOW).number(), limits::manifest_bytes);
    } catch (const std::system_error& error) {
        throw Error(Code::file_missing, in_bundle(folder, name) + " cannot be read: " + reason_of(error));
    }
    if (text.size() > limits::manifest_bytes)
        throw Error(Code::manifest_invalid, in_bundle(folder, name) + " is larger than 4 MiB");
    return text;
}

// The files of a bundle that a process opens, in whichever folder.
std::set<std::string> opened_by_the_host(const Manifest& manifest) {
    std::set<std::string> names(manifest.goldens.begin(), manifest.goldens.end());
    names.insert(manifest.model_file);
    for (const Manifest::Library& library : manifest.libraries) names.insert(library.file);
    return names;
}

// The folders that contain the listed files.
std::set<std::string> folders_of(const Manifest& manifest) {
    std::set<std::string> folders;
    for (const auto& [name, file] : manifest.files)
        for (auto slash = name.rfind('/'); slash != std::string::npos; slash = name.rfind('/', slash - 1))
            folders.insert(name.substr(0, slash));
    return folders;
}

void check_entry(const fs::path& folder, const Manifest& manifest, const std::set<std::string>& folders,
                 const fs::path& path) {
    const std::string name = path.lexically_relative(folder).generic_string();
    const fs::file_status status = status_of(path);
    if (fs::is_symlink(status)) refuse_link(folder, name);
    const bool is_expected = fs::is_directory(status)
                                 ? folders.contains(name)
                                 : manifest.files.contains(name) || name == manifest_name || name == digest_name;
    if (!is_expected)
        throw Error(Code::file_unexpected, in_bundle(folder, name) +
                                               " is not in its manifest; expected only files that `opwright ship` "
                                               "wrote");
    if (!fs::is_directory(status) && !fs::is_regular_file(status))
        throw Error(Code::file_unexpected, in_bundle(folder, name) + " is not a regular file");
}

void check_file(const fs::path& folder, const std::string& name, const Manifest::File& expected, bool read) {
    const fs::path path = folder / name;
    if (!fs::is_regular_file(status_of(path)))
        throw Error(Code::file_missing, in_bundle(folder, name) + " is missing; was the bundle copied completely?");
    std::error_code error;
    const auto size = static_cast<int64_t>(fs::file_size(path, error));
    if (error || size != expected.bytes)
        throw Error(Code::file_changed, in_bundle(folder, name) + " has " + std::to_string(size) + " bytes; expected " +
                                            std::to_string(expected.bytes) + ". Copy the bundle again");
    if (!read) return;
    const std::string digest = sha256_of_file(path);
    if (digest != expected.sha256)
        throw Error(Code::file_changed, in_bundle(folder, name) + " has the SHA-256 " + digest.substr(0, 12) +
                                            "...; expected " + expected.sha256.substr(0, 12) +
                                            "...: it changed after the bundle was shipped. Copy the bundle again");
}

}  // namespace

Manifest read_manifest(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
        throw Error(Code::bundle_missing, "the bundle " + folder.string() +
                                              (fs::exists(folder, error) ? " is not a folder" : " does not exist") +
                                              "; expected a folder that `opwright ship` wrote");
    const std::string text = read_small(folder, manifest_name);
    if (read_small(folder, digest_name) != sha256_of(text) + "  " + manifest_name + "\n")
        throw Error(Code::file_changed, in_bundle(folder, manifest_name) +
                                            " does not match manifest.sha256: one of them changed after the bundle was "
                                            "shipped. Copy the bundle again");
    return parse_manifest(text);
}

bool is_own_program(const fs::path& folder, const Manifest& manifest) {
    const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // /proc may be missing
    std::error_code error;
    return name && manifest.host_program && fs::equivalent(name, folder / *manifest.host_program, error) && !error;
}

void check_files(const fs::path& folder, const Manifest& manifest, Part part) {
    const std::set<std::string> folders = folders_of(manifest);
    try {
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
            check_entry(folder, manifest, folders, entry.path());
    } catch (const fs::filesystem_error& error) {
        throw Error(Code::file_missing, "the bundle " + folder.string() + " cannot be read: " + error.code().message());
    }
    const std::set<std::string> opened = opened_by_the_host(manifest);
    for (const auto& [name, file] : manifest.files) {
        const bool is_host = name.starts_with("host/");
        const bool is_in_part = part == Part::host ? is_host : !is_host || opened.contains(name);
        check_file(folder, name, file, part == Part::all || is_in_part);
    }
}

}  // namespace opwright::host
