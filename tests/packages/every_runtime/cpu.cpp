// Simple kernels: each makes its arguments row-major and loops over them.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

using opwright::ScalarType;
using opwright::Tensor;

Tensor floats(const Tensor& x, std::string_view name) {
    opwright::check::device(x, name, opwright::DeviceType::CPU);
    opwright::check::dtype(x, name, ScalarType::Float);
    return torch::stable::contiguous(x);
}

void same_sizes(const Tensor& x, std::string_view name, const Tensor& other) {
    OPWRIGHT_CHECK(x.dim() == other.dim(), name, " must have ", other.dim(), " dimensions, got ", x.dim());
    for (int64_t d = 0; d < x.dim(); ++d)
        OPWRIGHT_CHECK(x.size(d) == other.size(d), name, " must have sizes ", other.sizes(), ", got ", x.sizes());
}

template <typename T>
Tensor multiplied(const Tensor& x, const Tensor& y) {
    const Tensor left = torch::stable::contiguous(x), right = torch::stable::contiguous(y);
    Tensor result = torch::stable::empty_like(left);
    const T *a = left.const_data_ptr<T>(), *b = right.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t i = 0; i < left.numel(); ++i) to[i] = a[i] * b[i];
    return result;
}

Tensor product(const Tensor& x, const Tensor& y) {
    opwright::check::device(x, "x", opwright::DeviceType::CPU);
    opwright::check::device(y, "y", opwright::DeviceType::CPU);
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    opwright::check::dtype(y, "y", x.scalar_type());
    same_sizes(y, "y", x);
    return x.scalar_type() == ScalarType::Double ? multiplied<double>(x, y) : multiplied<float>(x, y);
}

// A gradient has the strides of its argument.
Tensor gradient(const Tensor& grad, const Tensor& other, const Tensor& argument) {
    Tensor result = torch::stable::empty_like(argument);
    torch::stable::copy_(result, product(grad, other));
    return result;
}

std::tuple<Tensor, Tensor> product_backward(const Tensor& grad, const Tensor& x, const Tensor& y,
                                            const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    return {wanted[0] ? gradient(grad, y, x) : Tensor(), wanted[1] ? gradient(grad, x, y) : Tensor()};
}

Tensor joined(const std::vector<Tensor>& parts, const std::optional<Tensor>& offset, int64_t times,
              const std::string& mode, double factor) {
    OPWRIGHT_CHECK(!parts.empty(), "parts must contain a tensor, got none");
    Tensor result = torch::stable::empty_like(floats(parts[0], "parts[0]"));
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < result.numel(); ++i) to[i] = 0;
    for (const Tensor& part : parts) {
        same_sizes(part, "a part", result);
        const Tensor dense = floats(part, "a part");
        const float* from = dense.const_data_ptr<float>();
        for (int64_t i = 0; i < result.numel(); ++i) to[i] += from[i] * static_cast<float>(times);
    }
    if (mode == "scale")
        for (int64_t i = 0; i < result.numel(); ++i) to[i] *= static_cast<float>(factor);
    if (offset) {
        same_sizes(*offset, "offset", result);
        const Tensor dense = floats(*offset, "offset");
        const float* from = dense.const_data_ptr<float>();
        for (int64_t i = 0; i < result.numel(); ++i) to[i] += from[i];
    }
    return result;
}

std::tuple<Tensor, Tensor> halves(const Tensor& x) {
    const Tensor dense = floats(x, "x");
    const float* from = dense.const_data_ptr<float>();
    Tensor above = torch::stable::empty_like(dense), below = torch::stable::empty_like(dense);
    for (int64_t i = 0; i < dense.numel(); ++i) {
        above.mutable_data_ptr<float>()[i] = from[i] < 0 ? 0 : from[i];
        below.mutable_data_ptr<float>()[i] = from[i] > 0 ? 0 : from[i];
    }
    return {above, below};
}

template <typename T>
Tensor signs_as(const Tensor& dense, ScalarType dtype) {
    Tensor result = torch::stable::new_empty(dense, dense.sizes(), dtype);
    const float* from = dense.const_data_ptr<float>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t i = 0; i < dense.numel(); ++i) to[i] = static_cast<T>((from[i] > 0) - (from[i] < 0));
    return result;
}

Tensor signs(const Tensor& x, ScalarType dtype) {
    OPWRIGHT_CHECK(dtype == ScalarType::Long || dtype == ScalarType::Int, "dtype must be int64 or int32");
    const Tensor dense = floats(x, "x");
    return dtype == ScalarType::Long ? signs_as<int64_t>(dense, dtype) : signs_as<int32_t>(dense, dtype);
}

void add_(Tensor x, double number, bool twice) {
    opwright::check::device(x, "x", opwright::DeviceType::CPU);
    opwright::check::dtype(x, "x", ScalarType::Float);
    opwright::check::contiguous(x, "x");
    float* data = x.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) data[i] += static_cast<float>(twice ? 2 * number : number);
}

void double_all_(const std::vector<Tensor>& xs) {
    for (const Tensor& x : xs) {
        opwright::check::device(x, "xs", opwright::DeviceType::CPU);
        opwright::check::dtype(x, "xs", ScalarType::Float);
        opwright::check::contiguous(x, "xs");
    }
    for (Tensor x : xs) {
        float* data = x.mutable_data_ptr<float>();
        for (int64_t i = 0; i < x.numel(); ++i) data[i] *= 2;
    }
}

}  // namespace

OPWRIGHT_IMPL(every_runtime, CPU, m) {
    m.impl("product", OPWRIGHT_FN(product));
    m.impl("product_backward", OPWRIGHT_FN(product_backward));
    m.impl("joined", OPWRIGHT_FN(joined));
    m.impl("halves", OPWRIGHT_FN(halves));
    m.impl("signs", OPWRIGHT_FN(signs));
    m.impl("add_", OPWRIGHT_FN(add_));
    m.impl("double_all_", OPWRIGHT_FN(double_all_));
}
