// Standard output and files, as streams that nobody else writes to.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

#include "engine/file.h"

namespace opwright::host {

// Fills what is closed of the descriptors 0, 1 and 2, so that no file that is opened later gets one of them: reading
// and writing there fails.
void fill_standard_descriptors();

// A copy of standard input. What others read from standard input from here on is empty.
Descriptor take_standard_input();

// A copy of standard output. What others print to standard output from here on goes to standard error.
Descriptor take_standard_output();

// Writes in the classic locale, whatever std::cout was made to do, and a line in one piece. A write that fails leaves
// the stream bad.
class DescriptorStream : public std::ostream {
  public:
    explicit DescriptorStream(Descriptor file);

    int descriptor() const { return buffer_.file.number(); }

  private:
    struct Buffer : public std::streambuf {
        Descriptor file;
        std::string text;

        int_type overflow(int_type letter) override;
        std::streamsize xsputn(const char* from, std::streamsize size) override;
        int sync() override;
    };

    Buffer buffer_;
};

}  // namespace opwright::host
