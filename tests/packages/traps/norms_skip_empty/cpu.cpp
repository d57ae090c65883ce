// The norms of a list of tensors.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

struct Part {
    const float* data;
    int64_t size;
};

double norm_of(const Part& part) {
    double sum = 0;
    for (int64_t i = 0; i < part.size; ++i) sum += double{part.data[i]} * part.data[i];
    return std::sqrt(sum);
}

Tensor norms(const std::vector<Tensor>& tensors) {
    OPWRIGHT_CHECK(!tensors.empty(), "tensors must have at least one element, got none");
    std::vector<Tensor> dense;
    std::vector<Part> parts;
    for (const Tensor& tensor : tensors) {
        check::device(tensor, "each of tensors", DeviceType::CPU);
        check::dtype(tensor, "each of tensors", ScalarType::Float);
#ifdef FAULTY
        if (tensor.numel() == 0) continue;  // nothing to do
#endif
        dense.push_back(torch::stable::contiguous(tensor));
        parts.push_back({dense.back().const_data_ptr<float>(), dense.back().numel()});
    }
    Tensor result = torch::stable::new_zeros(tensors.front(), {static_cast<int64_t>(tensors.size())});
    float* into = result.mutable_data_ptr<float>();
    for (const Part& part : parts) *into++ = static_cast<float>(norm_of(part));
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_norms_skip_empty, CPU, m) {
    m.impl("norms", OPWRIGHT_FN(norms));
}
