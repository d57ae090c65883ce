#include "program/request_line.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "bundle/json.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

using RequestJson = nlohmann::ordered_json;  // the bytes of a stream follow in the order of the line

// A batch needs five levels, and no model has more inputs than a manifest can list.
constexpr FormLimits request_limits{.depth = 8, .keys = limits::list_length};
constexpr size_t most_rows = 65536;

std::string in_quotes(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Parses a line, and rejects what it must not contain.
class LineParser {
  public:
    // `subject` and `expected` are for messages.
    LineParser(std::string subject, std::string expected)
        : subject_(std::move(subject)), expected_(std::move(expected)) {}

    [[noreturn]] void refuse(const std::string& why) const {
        throw Error(Code::input_unreadable, subject_ + " " + why + "; expected " + expected_);
    }

    RequestJson parse(std::string_view line) const {
        check_form(
            line, request_limits,
            {.key_twice = [this](const auto& key) { refuse("has the key " + in_quotes(key) + " twice"); },
             .too_deep = [this] { refuse("nests deeper than " + std::to_string(request_limits.depth) + " levels"); },
             .too_many_keys =
                 [this] { refuse("has more than " + std::to_string(request_limits.keys) + " keys in one object"); }});
        RequestJson json = RequestJson::parse(line, nullptr, false);
        if (json.is_discarded()) refuse("is not JSON");
        return json;
    }

    void require_inputs(const RequestJson& json) const {
        if (!json.is_object() || !json.contains("inputs") || !json["inputs"].is_object()) refuse("has no inputs");
    }

    void require_known_keys(const RequestJson& json, std::initializer_list<std::string_view> known) const {
        for (const auto& [key, value] : json.items())
            if (std::find(known.begin(), known.end(), key) == known.end()) refuse("has an unknown " + in_quotes(key));
    }

    // A file's path, relative to `folder`.
    std::string path_in(const RequestJson& file, const std::filesystem::path& folder, const std::string& what) const {
        if (!file.is_string()) refuse("has " + what + " that is not a file name");
        const auto& name = file.get_ref<const std::string&>();
        if (name.empty()) refuse("has " + what + " without a file name");
        if (name.find('\0') != std::string::npos) refuse("has " + what + " with a NUL in its file name");
        return (folder / name).string();
    }

    InputFile file_in(const std::string& name, const RequestJson& file, const std::filesystem::path& folder) const {
        InputFile input{name, path_in(file, folder, "an input")};
        if (name.empty() && !input.path.ends_with(".npz")) refuse("has an unnamed input, which only an .npz can be");
        return input;
    }

  private:
    std::string subject_, expected_;
};

const RequestJson* bytes_of(const RequestJson& file) {
    if (!file.is_object() || file.size() != 1 || !file.contains("bytes")) return nullptr;
    return &file["bytes"];
}

class StreamLineParser : public LineParser {
  public:
    explicit StreamLineParser(size_t number)
        : LineParser(
              "request " + std::to_string(number),
              "{\"inputs\": {\"name\": \"file\"}}, or {\"batch\": [...]} of such rows; {\"bytes\": N} replaces a "
              "file whose N bytes follow the line. The number of bytes that follow this line is unknown, so the "
              "stream ends here") {}

    Request row(const RequestJson& json, std::string name) const {
        require_inputs(json);
        require_known_keys(json, {"inputs"});
        Request request{.name = std::move(name), .output = "", .inputs = {}};
        const LineParser of_row(request.name, "a file name, or {\"bytes\": N}");
        for (const auto& [key, file] : json["inputs"].items()) {
            if (const RequestJson* bytes = bytes_of(file)) {
                request.inputs.push_back({key, "", size_in(*bytes)});
                continue;
            }
            if (!file.is_string()) refuse("has an input that is neither a file name nor {\"bytes\": N}");
            const auto add = [&, &key = key, &file = file] { request.inputs.push_back(of_row.file_in(key, file, "")); };
            if (const auto error = error_of(Code::internal, "", add); error && !request.error) request.error = error;
        }
        return request;
    }

  private:
    uint64_t size_in(const RequestJson& bytes) const {
        constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
        if (!bytes.is_number_unsigned() || bytes.get<uint64_t>() > most)
            refuse("has an input of " + bytes.dump(-1, ' ', true, RequestJson::error_handler_t::replace).substr(0, 40) +
                   " bytes");
        return bytes.get<uint64_t>();
    }
};

}  // namespace

void parse_line_of_list(std::string_view line, const std::filesystem::path& folder, Request& request) {
    const LineParser parser("the request",
                            "{\"inputs\": {\"name\": \"file\"}, \"output\": \"file\"}, where the output is optional");
    const RequestJson json = parser.parse(line);
    parser.require_inputs(json);
    parser.require_known_keys(json, {"inputs", "output"});
    if (json.contains("output")) request.output = parser.path_in(json["output"], folder, "an output");
    for (const auto& [name, file] : json["inputs"].items())
        request.inputs.push_back(parser.file_in(name, file, folder));
}

std::vector<Request> parse_line_of_stream(std::string_view line, size_t number) {
    const StreamLineParser parser(number);
    const std::string name = "request " + std::to_string(number);
    const RequestJson json = parser.parse(line);
    if (!json.is_object() || !json.contains("batch")) return {parser.row(json, name)};
    parser.require_known_keys(json, {"batch"});
    const RequestJson& batch = json["batch"];
    if (!batch.is_array() || batch.empty() || batch.size() > most_rows)
        parser.refuse("has a batch that is not a list of 1 to " + std::to_string(most_rows) + " rows");
    std::vector<Request> rows;
    for (const RequestJson& row : batch)
        rows.push_back(parser.row(row, "row " + std::to_string(rows.size()) + " of " + name));
    return rows;
}

}  // namespace opwright::host
