// Files that are written completely or not at all.
#pragma once

#include <string>
#include <string_view>

#include "engine/file.h"

namespace opwright::host {

// A new file beside the one that it replaces in the end. Its name is of its own: writers of one file do not meet, and
// the last one to finish wins. What a killed process left is removed by the next process that writes into the folder.
class AtomicFile {
  public:
    // Throws std::system_error, with `not_supported` where a device, a pipe or a socket is at `path`.
    explicit AtomicFile(std::string path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    // To be written to; the file has the permissions that the umask leaves.
    int descriptor() const { return file_.number(); }

    // Brings the content to the disk, and puts the file into its place: a link there is replaced, not followed. Throws
    // std::system_error.
    void commit();

  private:
    std::string path_, part_;
    Descriptor file_;
};

// Throws std::system_error; nothing has changed at `path` then.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace opwright::host
