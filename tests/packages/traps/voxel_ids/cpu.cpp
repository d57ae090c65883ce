#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// Keys sort like their voxels, and are equal for points in the same voxel.
#ifdef FAULTY
using Key = int;

std::vector<Key> keys_of(const int32_t* coords, int64_t count) {
    std::vector<Key> keys(static_cast<std::size_t>(count));
    std::array<int, 3> low{};
    std::array<int, 3> extent{};
    for (int axis = 0; axis < 3 && count > 0; ++axis) {
        int high = low[axis] = coords[axis];
        for (int64_t i = 1; i < count; ++i) {
            low[axis] = std::min(low[axis], coords[3 * i + axis]);
            high = std::max(high, coords[3 * i + axis]);
        }
        extent[axis] = high - low[axis] + 1;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int32_t* point = coords + 3 * i;
        keys[i] = ((point[0] - low[0]) * extent[1] + (point[1] - low[1])) * extent[2] + (point[2] - low[2]);
    }
    return keys;
}
#else
using Key = std::array<int32_t, 3>;

std::vector<Key> keys_of(const int32_t* coords, int64_t count) {
    std::vector<Key> keys(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) keys[i] = {coords[3 * i], coords[3 * i + 1], coords[3 * i + 2]};
    return keys;
}
#endif

Tensor voxel_ids(const Tensor& coords) {
    check::device(coords, "coords", DeviceType::CPU);
    check::dtype(coords, "coords", ScalarType::Int);
    check::sizes(coords, "coords", {check::any, 3});
    const Tensor points = torch::stable::contiguous(coords);
    const int64_t count = points.size(0);
    const std::vector<Key> keys = keys_of(points.const_data_ptr<int32_t>(), count);
    std::vector<int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return keys[i] < keys[j]; });
    Tensor result = torch::stable::new_empty(points, {count}, ScalarType::Long);
    auto* ids = result.mutable_data_ptr<int64_t>();
    int64_t id = -1;
    for (int64_t at = 0; at < count; ++at) {
        if (at == 0 || keys[order[at]] != keys[order[at - 1]]) ++id;
        ids[order[at]] = id;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_voxel_ids, CPU, m) {
    m.impl("voxel_ids", OPWRIGHT_FN(voxel_ids));
}
