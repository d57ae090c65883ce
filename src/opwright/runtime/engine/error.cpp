#include "opwright/host/error.h"

#include <algorithm>

namespace opwright {
namespace {

std::string in_one_line(std::string text) {
    std::replace_if(text.begin(), text.end(), [](unsigned char letter) { return letter < 32 || letter == 127; }, ' ');
    return text;
}

}  // namespace

Error::Error(Code code, const std::string& message) : std::runtime_error(in_one_line(message)), code_(code) {}

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
