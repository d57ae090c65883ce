#include "opwright/host/error.h"

#include <string_view>

#include "engine/one_line.h"

namespace opwright {
namespace {

// The length in bytes of the UTF-8 character at the start of `rest`; 0 if it is invalid. Source: The Unicode Standard,
// table 3-7.
size_t bytes_of_character(std::string_view rest) {
    const auto is_in = [rest](size_t at, unsigned least = 0x80, unsigned most = 0xbf) {
        return at < rest.size() && least <= static_cast<unsigned char>(rest[at]) &&
               static_cast<unsigned char>(rest[at]) <= most;
    };
    if (is_in(0, 0, 0x7f)) return 1;
    if (is_in(0, 0xc2, 0xdf)) return is_in(1) ? 2 : 0;
    if (is_in(0, 0xe0, 0xef))
        return is_in(1, is_in(0, 0xe0, 0xe0) ? 0xa0 : 0x80, is_in(0, 0xed, 0xed) ? 0x9f : 0xbf) && is_in(2) ? 3 : 0;
    if (is_in(0, 0xf0, 0xf4))
        return is_in(1, is_in(0, 0xf0, 0xf0) ? 0x90 : 0x80, is_in(0, 0xf4, 0xf4) ? 0x8f : 0xbf) && is_in(2) && is_in(3)
                   ? 4
                   : 0;
    return 0;
}

// Whether a terminal may interpret the character as a command or as the end of a line.
bool is_control(std::string_view character) {
    const auto byte = [character](size_t at) { return static_cast<unsigned char>(character[at]); };
    if (character.size() == 1) return byte(0) < 32 || byte(0) == 127;
    if (character.size() == 2) return (byte(0) == 0xc2 && byte(1) < 0xa0) || character == "\u061c";
    if (character.size() != 3 || byte(0) != 0xe2) return false;
    // U+200E, U+200F and U+2028 to U+202E; U+2066 to U+2069.
    if (byte(1) == 0x80) return byte(2) == 0x8e || byte(2) == 0x8f || (0xa8 <= byte(2) && byte(2) <= 0xae);
    return byte(1) == 0x81 && 0xa6 <= byte(2) && byte(2) <= 0xa9;
}

}  // namespace

std::string host::in_one_line(std::string_view text) {
    std::string line;
    while (!text.empty()) {
        const size_t bytes = bytes_of_character(text);
        if (bytes == 0)
            line += '?';
        else if (is_control(text.substr(0, bytes)))
            line += ' ';
        else
            line += text.substr(0, bytes);
        text.remove_prefix(bytes ? bytes : 1);
    }
    return line;
}

Error::Error(Code code, const std::string& message) : std::runtime_error(host::in_one_line(message)), code_(code) {}

const char* name_of(Code code) {
    switch (code) {
        case Code::internal:
            return "internal";
        case Code::usage:
            return "usage";
        case Code::bundle_missing:
            return "bundle_missing";
        case Code::manifest_invalid:
            return "manifest_invalid";
        case Code::format_unknown:
            return "format_unknown";
        case Code::path_outside:
            return "path_outside";
        case Code::file_missing:
            return "file_missing";
        case Code::file_unexpected:
            return "file_unexpected";
        case Code::file_changed:
            return "file_changed";
        case Code::torch_unsupported:
            return "torch_unsupported";
        case Code::cpu_unsupported:
            return "cpu_unsupported";
        case Code::device_unavailable:
            return "device_unavailable";
        case Code::namespace_taken:
            return "namespace_taken";
        case Code::library_refused:
            return "library_refused";
        case Code::schema_changed:
            return "schema_changed";
        case Code::operator_missing:
            return "operator_missing";
        case Code::kernel_missing:
            return "kernel_missing";
        case Code::model_invalid:
            return "model_invalid";
        case Code::input_unreadable:
            return "input_unreadable";
        case Code::input_unknown:
            return "input_unknown";
        case Code::input_dtype:
            return "input_dtype";
        case Code::input_rank:
            return "input_rank";
        case Code::input_size:
            return "input_size";
        case Code::input_device:
            return "input_device";
        case Code::run_failed:
            return "run_failed";
        case Code::golden_differs:
            return "golden_differs";
        case Code::output_unwritable:
            return "output_unwritable";
    }
    return "unknown";
}

}  // namespace opwright
