#include "model/device.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <optional>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {
namespace {

// The compute capability of the first GPU, from the driver: PyTorch's headers for this need a CUDA toolkit.
std::optional<Release> compute_capability() {
    using Init = int(unsigned int);
    using Attribute = int(int*, int, int);
    constexpr int major = 75, minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return std::nullopt;
    auto* init = reinterpret_cast<Init*>(dlsym(driver, "cuInit"));
    auto* attribute = reinterpret_cast<Attribute*>(dlsym(driver, "cuDeviceGetAttribute"));
    Release found;
    if (!init || !attribute || init(0) != 0 || attribute(&found.major, major, 0) != 0 ||
        attribute(&found.minor, minor, 0) != 0)
        return std::nullopt;
    return found;
}

}  // namespace

void check_device(const Manifest& manifest) {
    if (manifest.device == "cpu") return;
    if (!at::globalContext().hasCUDA())
        throw Error(
            Code::device_unavailable,
            "the bundle was made for cuda, but PyTorch finds no GPU: run it on a machine with a GPU, or ship the "
            "model for the CPU");
    const std::optional<Release> own = compute_capability();
    if (!own || manifest.cuda_architectures.empty()) return;
    std::string listed;
    for (const Architecture& one : manifest.cuda_architectures) {
        if (one.serves(*own)) return;
        listed += (listed.empty() ? "" : ", ") + to_string(one);
    }
    throw Error(Code::device_unavailable, "the bundle was made for GPUs of compute capability " + listed +
                                              ", but this one has " + to_string(*own) +
                                              ": ship the model for this GPU");
}

void compute_in_whole_float32() {
    // Once, because other threads' models may be reading the setting.
    static const bool is_set = [] {
        at::globalContext().setAllowTF32CuDNN(false);
        at::globalContext().setAllowTF32CuBLAS(false);
        return true;
    }();
    (void)is_set;
}

}  // namespace opwright::host
