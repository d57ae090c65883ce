// The device that a model runs on, through PyTorch interfaces that do not need a CUDA toolkit.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace opwright::host {

// The calling thread's current device of this type.
inline at::Device current_device(at::DeviceType type) {
    return type == at::kCPU ? at::Device(type) : c10::impl::VirtualGuardImpl(type).getDevice();
}

// Waits until a GPU has finished all submitted work. Throws c10::Error if a kernel failed.
inline void wait_for(at::Device device) {
    if (device.is_cpu() || device.is_meta()) return;
    if (!device.has_index()) device = current_device(device.type());
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

// Whether the GPU is unusable in this process. This is the case after a kernel accesses invalid memory; every
// later call reports the same error.
inline bool is_lost(at::Device device) {
    try {
        wait_for(device);
        return false;
    } catch (const std::exception&) {
        return true;
    }
}

}  // namespace opwright::host
