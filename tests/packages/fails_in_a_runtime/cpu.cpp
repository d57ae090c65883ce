// Kernels that double their argument, except where each of them is wrong.
#include <dlfcn.h>
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

using opwright::Tensor;

Tensor scaled(const Tensor& x, float factor) {
    opwright::check::device(x, "x", opwright::DeviceType::CPU);
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::empty_like(dense);
    for (int64_t i = 0; i < dense.numel(); ++i)
        result.mutable_data_ptr<float>()[i] = dense.const_data_ptr<float>()[i] * factor;
    return result;
}

Tensor first_again(const Tensor& x) {
    static std::map<std::vector<int64_t>, Tensor> first;
    const Tensor result = scaled(x, 2);
    const auto sizes = x.sizes();
    return torch::stable::clone(first.try_emplace({sizes.begin(), sizes.end()}, result).first->second);
}

Tensor declines(const Tensor& x, const std::string& mode) {
    OPWRIGHT_CHECK(mode == "twice", "mode must be 'twice', got '", mode, "'");
    return scaled(x, 2);
}

bool is_alone() {
    return dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr;
}

Tensor aborts_alone(const Tensor& x) {
    if (is_alone()) std::abort();
    return scaled(x, 2);
}

Tensor raises_alone(const Tensor& x) {
    OPWRIGHT_CHECK(!is_alone(), "x must be in a process with Python");
    return scaled(x, 2);
}

Tensor zeros_alone(const Tensor& x) {
    return scaled(x, 2);
}

Tensor zeros_alone_backward(const Tensor& grad, const Tensor& x) {
    (void)x;
    return scaled(grad, is_alone() ? 0 : 2);
}

}  // namespace

OPWRIGHT_IMPL(fails_in_a_runtime, CPU, m) {
    m.impl("first_again", OPWRIGHT_FN(first_again));
    m.impl("declines", OPWRIGHT_FN(declines));
    m.impl("aborts_alone", OPWRIGHT_FN(aborts_alone));
    m.impl("raises_alone", OPWRIGHT_FN(raises_alone));
    m.impl("zeros_alone", OPWRIGHT_FN(zeros_alone));
    m.impl("zeros_alone_backward", OPWRIGHT_FN(zeros_alone_backward));
}
