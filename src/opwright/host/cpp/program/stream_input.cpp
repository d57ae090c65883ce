#include "program/stream_input.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "opwright/host/error.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

[[noreturn]] void refuse_stream(const std::string& why) {
    throw Error(Code::input_unreadable, "the stream of requests " + why);
}

constexpr const char* cut_off = "; expected it to end after a request: the program that writes it may have been killed";

}  // namespace

std::optional<std::string> StreamInput::line() {
    std::string line;
    while (true) {
        if (buffered() == 0 && !fill()) {
            if (line.empty()) return std::nullopt;
            refuse_stream(std::string("ends inside a line") + cut_off);
        }
        const char* const start = buffer_.data() + start_;
        const char* const end = std::find(start, start + buffered(), '\n');
        const auto size = static_cast<size_t>(end - start);
        if (line.size() + size > longest_line)
            refuse_stream(
                "has a line that is longer than 16 MiB; expected one request per line, and large inputs as bytes "
                "after it");
        line.append(start, size);
        const bool is_whole = size < buffered();
        start_ += size + (is_whole ? 1 : 0);
        if (is_whole) return line;
    }
}

std::optional<std::string> StreamInput::bytes(uint64_t size) {
    std::string bytes;
    try {
        bytes.reserve(size);
    } catch (const std::bad_alloc&) {
        drop(size);
        return std::nullopt;
    } catch (const std::length_error&) {
        drop(size);
        return std::nullopt;
    }
    const size_t at_hand = std::min<size_t>(size, buffered());
    bytes.append(buffer_.data() + start_, at_hand);
    start_ += at_hand;
    // In pieces, so that memory is used only as the bytes arrive.
    while (bytes.size() < size) {
        const size_t before = bytes.size(), room = std::min<size_t>(size - before, buffer_bytes);
        bytes.resize(before + room);
        const size_t found = read_into(bytes.data() + before, room);
        bytes.resize(before + found);
        if (found == 0) refuse_stream(std::string("ends inside the bytes of an input") + cut_off);
    }
    return bytes;
}

void StreamInput::drop(uint64_t size) {
    while (size > 0) {
        if (buffered() == 0 && !fill()) refuse_stream(std::string("ends inside the bytes of an input") + cut_off);
        const size_t dropped = std::min<size_t>(size, buffered());
        start_ += dropped;
        size -= dropped;
    }
}

size_t StreamInput::read_into(char* place, size_t size) {
    while (stop_.wait_for(file_, POLLIN)) {
        const ssize_t found = read(file_, place, size);
        if (found >= 0) return static_cast<size_t>(found);
        if (errno != EINTR && errno != EAGAIN) refuse_stream("cannot be read: " + reason_of(last_error("read")));
    }
    return 0;
}

bool StreamInput::fill() {
    start_ = 0;
    end_ = read_into(buffer_.data(), buffer_.size());
    return end_ > 0;
}

void read_bytes(Request& row, StreamInput& input) {
    for (InputFile& file : row.inputs) {
        if (!file.size) continue;
        if (row.error) {
            input.drop(*file.size);
            continue;
        }
        std::optional<std::string> bytes = input.bytes(*file.size);
        if (bytes)
            file.bytes = std::move(*bytes);
        else
            row.error =
                error_of(Code::internal, "", [&] { refuse_input(name_in_messages(file), "it is larger than memory"); });
    }
}

}  // namespace opwright::host
