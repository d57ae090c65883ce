// The device that a model computes on, through interfaces of PyTorch that need no CUDA toolkit.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace opwright::host {

// The device of this type that the calling thread works with.
inline at::Device current_device(at::DeviceType type) {
    return type == at::kCPU ? at::Device(type) : c10::impl::VirtualGuardImpl(type).getDevice();
}

// Until a GPU has done all that it was asked. Throws c10::Error where a kernel failed.
inline void wait_for(at::Device device) {
    if (device.is_cpu() || device.is_meta()) return;
    if (!device.has_index()) device = current_device(device.type());
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

// Whether the GPU computes nothing more in this process: that is so after a kernel's access to memory that is not its
// own, and each later call reports it again.
inline bool is_lost(at::Device device) {
    try {
        wait_for(device);
        return false;
    } catch (const std::exception&) {
        return true;
    }
}

}  // namespace opwright::host
