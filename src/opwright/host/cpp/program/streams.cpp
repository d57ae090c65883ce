#include "program/streams.h"

#include <locale>

namespace opwright::host {

void fill_standard_descriptors() {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        // Opens a folder by path only: it exists on every machine, unlike /dev/null. The system assigns the lowest free
        // number, which is this one.
        if (fcntl(number, F_GETFD) < 0) [[maybe_unused]]
            const int filled = open("/", O_PATH);
}

Descriptor take_standard_input() {
    Descriptor own(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    // Without this device, reading fails.
    const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor name(open("/", O_PATH | O_CLOEXEC));
    if (own) dup2(nothing ? nothing.number() : name.number(), STDIN_FILENO);
    return own;
}

Descriptor take_standard_output() {
    Descriptor own(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (own) dup2(STDERR_FILENO, STDOUT_FILENO);
    return own;
}

DescriptorStream::DescriptorStream(Descriptor file) : std::ostream(nullptr) {
    buffer_.file = std::move(file);
    imbue(std::locale::classic());
    rdbuf(&buffer_);
}

DescriptorStream::Buffer::int_type DescriptorStream::Buffer::overflow(int_type letter) {
    if (!traits_type::eq_int_type(letter, traits_type::eof())) text += traits_type::to_char_type(letter);
    return traits_type::not_eof(letter);
}

std::streamsize DescriptorStream::Buffer::xsputn(const char* from, std::streamsize size) {
    text.append(from, static_cast<size_t>(size));
    return size;
}

int DescriptorStream::Buffer::sync() {
    const std::string whole = std::exchange(text, "");
    try {
        write_all(file.number(), whole);
        return 0;
    } catch (const std::system_error&) {
        return -1;
    }
}

}  // namespace opwright::host
