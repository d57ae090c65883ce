#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
Tensor gather_as(const Tensor& features, const Tensor& neighbors) {
    const int64_t rows = features.size(0), width = features.size(1), count = neighbors.size(0);
    const Tensor dense = torch::stable::contiguous(features), chosen = torch::stable::contiguous(neighbors);
    const int64_t* index = chosen.const_data_ptr<int64_t>();
    for (int64_t e = 0; e < count; ++e) {
        OPWRIGHT_CHECK(index[e] >= -1 && index[e] < rows, "neighbors must be -1 to ", rows - 1, ", got ", index[e]);
    }
    Tensor result = torch::stable::new_empty(features, {count, width});
    const T* from = dense.const_data_ptr<T>();
    T* into = result.mutable_data_ptr<T>();
    for (int64_t e = 0; e < count; ++e) {
        if (index[e] < 0) {
            std::fill_n(into + e * width, width, T{0});
        } else {
            std::copy_n(from + index[e] * width, width, into + e * width);
        }
    }
    return result;
}

Tensor gather(const Tensor& features, const Tensor& neighbors) {
    check::dtype(features, "features", {ScalarType::Float, ScalarType::Double});
    check::dtype(neighbors, "neighbors", ScalarType::Long);
    check::rank(features, "features", 2);
    check::rank(neighbors, "neighbors", 1);
    return features.scalar_type() == ScalarType::Float ? gather_as<float>(features, neighbors)
                                                       : gather_as<double>(features, neighbors);
}

}  // namespace

OPWRIGHT_IMPL(trap_neighbor_rows, CPU, m) {
    m.impl("gather", OPWRIGHT_FN(gather));
}
