// Standard output and files as streams with a single writer.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

#include "engine/file.h"

namespace opwright::host {

// Fills those of the descriptors 0, 1 and 2 that are closed, so that no file opened later gets one of them: reading and
// writing there fails.
void fill_standard_descriptors();

// Returns a copy of standard input. From then on, other readers find standard input empty.
Descriptor take_standard_input();

// Returns a copy of standard output. From then on, other output to standard output goes to standard error.
Descriptor take_standard_output();

// Writes in the classic locale, regardless of std::cout's settings, and each line in one write. A failed write leaves
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
