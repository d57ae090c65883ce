#include "engine/reason.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <string_view>

#include "engine/file.h"
#include "engine/one_line.h"
#include "opwright/host/error.h"

namespace opwright::host {

std::string reason(const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
    // An error from a running model comes after its source, with a mark at the location and indented lines below.
    constexpr std::string_view running = "The following operation failed in the TorchScript interpreter.";
    if (const auto place = text.rfind("<--- HERE\n"); text.starts_with(running) && place != std::string::npos) {
        auto line = text.find('\n', place);
        while (line != std::string::npos && text.find_first_of(" \n", line + 1) == line + 1)
            line = text.find('\n', line + 1);
        if (line != std::string::npos) text.erase(0, line);
    }
    text.erase(0, text.find_first_not_of('\n'));
    text.erase(std::min(text.find('\n'), text.size()));
    return text.empty() ? "it threw an exception without a message" : text;
}

std::string current_exception_reason() {
    try {
        throw;
    } catch (const std::exception& error) {
        return reason(error);
    } catch (...) {
        return "it threw something that is not a std::exception";
    }
}

Error current_error(Code code, const std::string& what) {
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (...) {
        return {code, what + current_exception_reason()};
    }
}

void require_file(const std::string& what, const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) throw Error(Code::file_missing, what + " " + path + " does not exist");
    if (std::filesystem::is_directory(status)) throw Error(Code::file_missing, what + " " + path + " is a folder");
}

void print_failure(const std::string& message) {
    // In one write, and not through std::cerr: threads do not interleave, and a library cannot have changed the stream.
    const std::string line = std::string(program_name) + ": " + in_one_line(message) + "\n";
    try {
        write_all(STDERR_FILENO, line);
    } catch (const std::system_error&) {  // there is nowhere else to report it
    }
}

}  // namespace opwright::host
