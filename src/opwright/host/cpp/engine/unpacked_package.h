// An AOTInductor package as a folder: PyTorch opens its compiled code by path.
#pragma once

#include <filesystem>
#include <string>

namespace opwright::host {

class UnpackedPackage {
  public:
    // Unpacks the package at `path` into a new folder that only this user can open, inside the first writable one of
    // $TMPDIR, /tmp, /var/tmp, /dev/shm and the current folder. Throws Error with `model_invalid`.
    explicit UnpackedPackage(const std::string& path);
    ~UnpackedPackage();
    UnpackedPackage(const UnpackedPackage&) = delete;
    UnpackedPackage& operator=(const UnpackedPackage&) = delete;

    const std::filesystem::path& folder() const { return folder_; }

  private:
    std::filesystem::path folder_;
};

}  // namespace opwright::host
