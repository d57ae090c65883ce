// Whole runs: a bundle, its inputs, and the command line, as entries of an archive. The bundle's files are in bundle/;
// `options` contains the command line after the bundle's name, one argument per line; the others are inputs and lists.
#include <ATen/core/Tensor.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bundle/digest.h"
#include "engine/file.h"
#include "program/last_words.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/json.h"
#include "tests/fuzz/npy.h"
#include "tests/fuzz/options.h"
#include "tests/fuzz/saved.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/zip.h"

// The whole program except `main` and the handlers of signals and `exit`, which belong to the fuzzer here.
#define main opwright_host_main
#include "program/main.cpp"
#undef main

namespace opwright::host {

void announce_early_end(int) {}
void announce_early_end_first() {}
void end_is_expected() {}

}  // namespace opwright::host

namespace opwright::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view in_bundle = "bundle/", manifest_file = "bundle/manifest.json";
const std::string any_digest(64, '0');

// Files must not be written elsewhere.
bool stays_here(const fs::path& path) {
    if (path.is_absolute() || path.native().size() > 200 || path.native().find('\0') != std::string::npos) return false;
    for (const fs::path& part : path)
        if (part == "..") return false;
    return true;
}

// Fills in the size and digest of each file for which both are 0.
std::string with_digests(const std::string& text, const std::vector<Entry>& entries) {
    nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
    if (!whole.is_object() || !whole.contains("files") || !whole["files"].is_object()) return text;
    bool any = false;
    for (const auto& [name, bytes] : entries) {
        if (!name.starts_with(in_bundle)) continue;
        const auto listed = whole["files"].find(name.substr(in_bundle.size()));
        if (listed == whole["files"].end() || !listed->is_object()) continue;
        if (const nlohmann::json unknown{{"bytes", 0}, {"sha256", any_digest}}; *listed != unknown) continue;
        *listed = {{"bytes", bytes.size()}, {"sha256", host::sha256_of(bytes)}};
        any = true;
    }
    return any ? whole.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) : text;
}

void write_file(const fs::path& path, std::string_view bytes) {
    std::error_code error;
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    const host::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file) host::write_all(file.number(), bytes);  // not if a folder has that name
}

// Writes the files, and returns the command line.
std::string lay_out(const std::vector<Entry>& entries) {
    for (const fs::directory_entry& old : fs::directory_iterator(".")) fs::remove_all(old.path());
    std::string options;
    bool has_digest = false;
    for (const auto& [name, bytes] : entries) {
        if (name == "options") options = bytes;
        if (!stays_here(name)) continue;
        has_digest = has_digest || name == "bundle/manifest.sha256";
        write_file(name, name == manifest_file ? with_digests(bytes, entries) : bytes);
        if (name == manifest_file && !has_digest)
            write_file("bundle/manifest.sha256", host::sha256_of(with_digests(bytes, entries)) + "  manifest.json\n");
    }
    return "bundle\n" + options;
}

// Limits the requested work to a short time, without standard input.
bool is_small(host::Options& options) {
    options.runners = std::min(options.runners, 3);
    options.threads = std::min(options.threads, 1);
    options.repeat = std::min(options.repeat, 3);
    options.warm_up = std::min(options.warm_up, 2);
    if (options.stream || options.memory_limit || options.requests == "-" || !stays_here(options.output) ||
        (options.json != "-" && !stays_here(options.json)))
        return false;
    const auto is_elsewhere = [](const host::Request& one) { return !one.error && !stays_here(one.output); };
    try {
        const std::vector<host::Request> requests = host::read_requests(options);
        return requests.size() <= 20 && std::none_of(requests.begin(), requests.end(), is_elsewhere);
    } catch (const Error&) {
        return true;
    }
}

std::string read_bundle(std::string_view input) {
    const std::optional<std::vector<Entry>> entries = unzipped(input);
    if (!entries) return "skipped";
    const std::string lines = lay_out(*entries);
    const host::Descriptor out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    std::string outcome = "skipped";
    try {
        std::optional<host::Options> options = parsed_options(lines);
        if (!options || !is_small(*options)) return outcome;
        host::Report report(*options);
        int code = EXIT_SUCCESS;
        const auto run = [&] { code = host::run(*options, report, host::Clock::now()); };
        if (const auto error = host::error_of(Code::internal, "", run)) {
            code = static_cast<int>(error->code());
            report.failed(*error);
            require(error->code() != Code::internal, std::string("an error without a specific code: ") + error->what());
        }
        outcome = code == EXIT_SUCCESS ? "accepted" : name_of(static_cast<Code>(code));
        require(outcome != "unknown", "an exit code without a name");
    } catch (const Error& error) {
        require_plain(error, {Code::usage, Code::output_unwritable});
        outcome = name_of(error.code());
    }
    dup2(out.number(), STDOUT_FILENO);  // the report took it
    return outcome;
}

std::string changed_file(std::string bytes, const std::string& name, Random& random) {
    constexpr std::array<std::string_view, 3> none{"", "x", "0"};
    if (name == manifest_file) return manifest.changed(std::move(bytes), random);
    if (name == "options") return changed_options(std::move(bytes), random);
    if (name == "list.jsonl") return request_list.changed(std::move(bytes), random);
    if (name.ends_with(".npy")) return changed_npy(std::move(bytes), random);
    if (name.ends_with(".npz")) return npz.changed(std::move(bytes), random);
    if (name.ends_with(".png") || name.ends_with(".jpg")) return changed_image(std::move(bytes), random);
    if (name.ends_with(".json")) return changed_json(std::move(bytes), none, random);
    // The host does not control what a model computes.
    if (name == "bundle/model.pt") return bytes;
    if (name.ends_with(".pt")) return changed_archive(std::move(bytes), random);
    return changed_bytes(std::move(bytes), random);
}

std::string changed_bundle(std::string input, Random& random) {
    return changed_zip(input, changed_file, random);
}

}  // namespace

const Target bundle{"bundle", read_bundle, changed_bundle};

}  // namespace opwright::fuzz
