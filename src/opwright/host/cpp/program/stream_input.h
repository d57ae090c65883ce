// Reads standard input as lines with bytes between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/requests.h"
#include "program/stop_signal.h"

namespace opwright::host {

// Every method throws Error with `input_unreadable` if the input fails or ends in the middle.
class StreamInput {
  public:
    // `stop` must outlive it, and ends the input.
    StreamInput(int file, const StopSignal& stop) : file_(file), stop_(stop), buffer_(buffer_bytes) {}

    // Returns a line without its newline; nullopt at the end.
    std::optional<std::string> line();

    // Returns the next bytes; nullopt if memory is insufficient, in which case they are dropped.
    std::optional<std::string> bytes(uint64_t size);

    void drop(uint64_t size);

  private:
    static constexpr size_t buffer_bytes = size_t{1} << 18, longest_line = size_t{1} << 24;

    // Returns the number of bytes read; 0 at the end.
    size_t read_into(char* place, size_t size);
    // Fills the empty buffer. Returns whether it contains anything.
    bool fill();
    size_t buffered() const { return end_ - start_; }

    int file_;
    const StopSignal& stop_;
    std::vector<char> buffer_;
    size_t start_ = 0, end_ = 0;  // of the buffer's content
};

// Reads the bytes of the row's inputs, which follow its line. Bytes of a row that has an error are also read. Throws
// Error like the methods above.
void read_bytes(Request& row, StreamInput& input);

}  // namespace opwright::host
