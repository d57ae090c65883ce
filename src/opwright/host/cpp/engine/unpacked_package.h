// Unpacks an AOTInductor package into a folder, because PyTorch opens its compiled code by path.
#pragma once

#include <filesystem>
#include <string>

#include "engine/file.h"

namespace opwright::host {

// Checks that no record of the package at `path` is outside it, and that it contains compiled code: otherwise PyTorch
// would compile its sources, with the commands that the package contains. Throws Error with `model_invalid`.
void check_package(const std::string& path);

class UnpackedPackage {
  public:
    // Unpacks the package at `path`, which must have been checked, into a new folder that only this user can open, in
    // the first writable one of $TMPDIR, /tmp, /var/tmp, /dev/shm and the current folder. Throws Error with
    // `model_invalid`.
    explicit UnpackedPackage(const std::string& path);
    ~UnpackedPackage();
    UnpackedPackage(const UnpackedPackage&) = delete;
    UnpackedPackage& operator=(const UnpackedPackage&) = delete;

    const std::filesystem::path& folder() const { return folder_; }

    // Removes the folder early, once nothing in it will be opened again.
    void remove();

  private:
    std::filesystem::path folder_;
    Descriptor lock_;  // while held, no other process treats the folder as left by a killed process
};

}  // namespace opwright::host
