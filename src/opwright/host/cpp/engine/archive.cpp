#include "engine/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/import_read.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/file.h"
#include "engine/reason.h"

namespace opwright::host {
namespace {

// The bytes of an archive. PyTorch's own memory readers follow the offsets in a corrupt archive past the end.
class Memory : public caffe2::serialize::ReadAdapterInterface {
  public:
    explicit Memory(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

    size_t size() const override { return bytes_.size(); }

    size_t read(uint64_t place, void* into, size_t size, const char*) const override {
        const size_t found = std::min<uint64_t>(size, bytes_.size() - std::min<uint64_t>(place, bytes_.size()));
        if (found > 0) std::memcpy(into, bytes_.data() + place, found);
        return found;
    }

  private:
    std::vector<char> bytes_;
};

}  // namespace

c10::IValue read_archive(const std::string& what, const std::string& path, Code code) {
    require_file(what, path);
    std::vector<char> bytes;
    try {
        bytes = read_all<std::vector<char>>(open_to_read(path).number());
    } catch (const std::system_error& error) {
        throw Error(Code::file_missing, what + " " + path + " cannot be read: " + reason_of(error));
    }
    try {
        caffe2::serialize::PyTorchStreamReader reader(std::make_shared<Memory>(std::move(bytes)));
        // As in torch::jit::pickle_load.
        return torch::jit::readArchiveAndTensors("data", "", "", std::nullopt, std::nullopt, std::nullopt, reader);
    } catch (const std::exception& error) {
        throw Error(code, what + " " + path + " cannot be read: " + reason(error));
    }
}

std::vector<char> archive_of(const c10::IValue& value) {
    return torch::jit::pickle_save(value);
}

}  // namespace opwright::host
