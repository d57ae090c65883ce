// Writes files completely or not at all.
#pragma once

#include <string>
#include <string_view>

#include "engine/file.h"

namespace opwright::host {

// A new file next to the one that it finally replaces. Its name is unique: concurrent writers of one file do not
// interfere, and the last one to finish wins. Files left by a killed process are removed by the next process that
// writes to the folder.
class AtomicFile {
  public:
    // Throws std::system_error, with `not_supported` if `path` is a device, a pipe or a socket.
    explicit AtomicFile(std::string path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    // The descriptor to write to. The file's permissions follow the umask.
    int descriptor() const { return file_.number(); }

    // Flushes the content to disk and moves the file into place. Replaces a link at `path` instead of following it.
    // Throws std::system_error.
    void commit();

  private:
    std::string path_, part_;
    Descriptor file_;
};

// Throws std::system_error; `path` is unchanged then.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace opwright::host
