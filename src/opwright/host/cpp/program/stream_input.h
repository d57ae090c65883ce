// Standard input as lines, and bytes between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/requests.h"
#include "program/stop_signal.h"

namespace opwright::host {

// Every method throws Error with `input_unreadable` where the input fails, or ends in the middle.
class StreamInput {
  public:
    // `stop` outlives it, and ends the input.
    StreamInput(int file, const StopSignal& stop) : file_(file), stop_(stop), buffer_(buffer_bytes) {}

    // Without its newline; empty at the end.
    std::optional<std::string> line();

    // The next bytes; empty where memory does not suffice for them: they are dropped then.
    std::optional<std::string> bytes(uint64_t size);

    void drop(uint64_t size);

  private:
    static constexpr size_t buffer_bytes = size_t{1} << 18, longest_line = size_t{1} << 24;

    // Returns how many bytes came; 0 at the end.
    size_t read_into(char* place, size_t size);
    // Fills the buffer, which is empty. Returns whether there is something in it.
    bool fill();
    size_t buffered() const { return end_ - start_; }

    int file_;
    const StopSignal& stop_;
    std::vector<char> buffer_;
    size_t start_ = 0, end_ = 0;  // of what the buffer holds
};

// The bytes of the row's inputs, which come behind its line. Those of no use, because the row has an error, are read
// too. Throws Error as the methods above.
void read_bytes(Request& row, StreamInput& input);

}  // namespace opwright::host
