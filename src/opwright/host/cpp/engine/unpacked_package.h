// An AOTInductor package as a folder: PyTorch opens its compiled code by path.
#pragma once

#include <filesystem>
#include <string>

#include "engine/file.h"

namespace opwright::host {

// No record leads out of the package at `path`, and it holds compiled code: PyTorch would compile the sources of one
// that does not, with the commands that it names. Throws Error with `model_invalid`.
void check_package(const std::string& path);

class UnpackedPackage {
  public:
    // Unpacks the package at `path`, which was checked, into a new folder that only this user can open, inside the
    // first writable one of $TMPDIR, /tmp, /var/tmp, /dev/shm and the current folder. Throws Error with
    // `model_invalid`.
    explicit UnpackedPackage(const std::string& path);
    ~UnpackedPackage();
    UnpackedPackage(const UnpackedPackage&) = delete;
    UnpackedPackage& operator=(const UnpackedPackage&) = delete;

    const std::filesystem::path& folder() const { return folder_; }

    // Removes the folder before this object ends, where nothing of it will be opened again.
    void remove();

  private:
    std::filesystem::path folder_;
    Descriptor lock_;  // while it is there, no other process takes the folder for one of a killed process
};

}  // namespace opwright::host
