#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

Tensor mean_power(const Tensor& x, std::vector<int64_t> dims, bool keepdim) {
    check::dtype(x, "x", ScalarType::Float);
    const int64_t rank = x.dim();
    std::vector<bool> seen(rank, false);
    for (int64_t& dim : dims) {
        OPWRIGHT_CHECK(dim >= -rank && dim < rank, "dims must be dimensions of x, got ", dim, " for shape ", x.sizes());
        if (dim < 0) dim += rank;
        OPWRIGHT_CHECK(!seen[dim], "dimension ", dim, " occurs twice in dims");
        seen[dim] = true;
    }
    if (dims.empty()) {
        for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
    }
#ifndef FAULTY
    std::sort(dims.begin(), dims.end());
#endif
    // The sizes of the result, and its stride for each dimension of x.
    std::vector<int64_t> sizes, steps(rank, 0);
    std::vector<int64_t> kept;
    std::size_t next = 0;
    int64_t count = 1;
    for (int64_t d = 0; d < rank; ++d) {
        if (next < dims.size() && dims[next] == d) {
            ++next;
            count *= x.size(d);
            if (keepdim) sizes.push_back(1);
        } else {
            kept.push_back(d);
            sizes.push_back(x.size(d));
        }
    }
    int64_t total = 1;
    for (std::size_t k = kept.size(); k-- > 0;) {
        steps[kept[k]] = total;
        total *= x.size(kept[k]);
    }
    const Tensor source = torch::stable::contiguous(x);
    const float* from = source.const_data_ptr<float>();
    std::vector<double> sums(total, 0.0);
    std::vector<int64_t> index(rank, 0);
    int64_t at = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
        sums[at] += static_cast<double>(from[i]) * from[i];
        for (int64_t d = rank - 1; d >= 0; --d) {
            at += steps[d];
            if (++index[d] < x.size(d)) break;
            at -= steps[d] * x.size(d);
            index[d] = 0;
        }
    }
    Tensor result = torch::stable::new_empty(x, sizes);
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < total; ++i) into[i] = static_cast<float>(sums[i] / static_cast<double>(count));
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_mean_power, CPU, m) {
    m.impl("mean_power", OPWRIGHT_FN(mean_power));
}
