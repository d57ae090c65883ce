// A folder for the files that a run writes.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "tests/fuzz/target.h"

namespace opwright::fuzz {

// A folder in $TMPDIR that is the current folder for the lifetime of this object.
class Scratch {
  public:
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "opwright-fuzz-XXXXXX").string();
        require(mkdtemp(name.data()) && chdir(name.c_str()) == 0, "no folder for temporary files");
        folder_ = name;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

  private:
    std::filesystem::path folder_;
};

}  // namespace opwright::fuzz
