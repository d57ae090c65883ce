#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(weight, "weight", ScalarType::Float);
    check::dtype(bias, "bias", ScalarType::Float);
    OPWRIGHT_CHECK(x.dim() >= 1 && x.size(x.dim() - 1) >= 1, "x must have a last dimension of at least 1, got ",
                   x.sizes());
    check::sizes(weight, "weight", {x.size(x.dim() - 1)});
    check::sizes(bias, "bias", {x.size(x.dim() - 1)});
    OPWRIGHT_CHECK(eps > 0, "eps must be positive, got ", eps);
}

// Writes the centered row, and returns the factor that normalizes it.
double normalize(const float* row, int64_t width, double eps, double* centered) {
    double sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += row[j];
    const double mean = sum / static_cast<double>(width);
    double squares = 0;
    for (int64_t j = 0; j < width; ++j) {
        centered[j] = row[j] - mean;
        squares += centered[j] * centered[j];
    }
    return 1 / std::sqrt(squares / static_cast<double>(width) + eps);
}

Tensor affine_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    check_arguments(x, weight, bias, eps);
    const Tensor source = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    const Tensor biases = torch::stable::contiguous(bias);
    const float* from = source.const_data_ptr<float>();
    const float* w = weights.const_data_ptr<float>();
    const float* b = biases.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(x, x.sizes());
    float* into = result.mutable_data_ptr<float>();
    const int64_t width = weight.numel(), rows = x.numel() / width;
    std::vector<double> centered(width);
    for (int64_t i = 0; i < rows; ++i) {
        const double scale = normalize(from + i * width, width, eps, centered.data());
        for (int64_t j = 0; j < width; ++j) {
            into[i * width + j] = static_cast<float>(centered[j] * scale * w[j] + b[j]);
        }
    }
    return result;
}

std::tuple<Tensor, Tensor, Tensor> affine_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                        const Tensor& bias, double eps,
                                                        const std::vector<bool>& wanted) {
    check_arguments(x, weight, bias, eps);
    check::dtype(grad, "grad", ScalarType::Float);
    check::same_sizes(grad, "grad", x, "x");
    OPWRIGHT_CHECK(wanted.size() == 3, "wanted must have 3 flags, got ", wanted.size());
    const Tensor source = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    const Tensor incoming = torch::stable::contiguous(grad);
    const float* from = source.const_data_ptr<float>();
    const float* w = weights.const_data_ptr<float>();
    const float* given = incoming.const_data_ptr<float>();
    const int64_t width = weight.numel(), rows = x.numel() / width;
    std::vector<double> centered(width), flowing(width), to_weight(width), to_bias(width);
    Tensor to_x = wanted[0] ? torch::stable::new_empty(x, x.sizes()) : Tensor();
    float* into = wanted[0] ? to_x.mutable_data_ptr<float>() : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
        const float* g = given + i * width;
        for (int64_t j = 0; j < width; ++j) to_bias[j] += g[j];
#ifdef FAULTY
        if (!wanted[0]) continue;
#else
        if (!wanted[0] && !wanted[1]) continue;
#endif
        const double scale = normalize(from + i * width, width, eps, centered.data());
        double to_scale = 0;
        for (int64_t j = 0; j < width; ++j) {
            to_weight[j] += g[j] * (centered[j] * scale);
            flowing[j] = static_cast<double>(g[j]) * w[j];
            to_scale += flowing[j] * centered[j];
        }
        if (!wanted[0]) continue;
        const double to_square = -0.5 * to_scale * (scale * scale * scale) / static_cast<double>(width);
        double sum = 0;
        for (int64_t j = 0; j < width; ++j) {
            flowing[j] = flowing[j] * scale + 2 * (to_square * centered[j]);
            sum += flowing[j];
        }
        for (int64_t j = 0; j < width; ++j) {
            into[i * width + j] = static_cast<float>(flowing[j] - sum / static_cast<double>(width));
        }
    }
    const auto rounded = [&](const std::vector<double>& sums) {
        Tensor result = torch::stable::new_empty(weight, weight.sizes());
        float* out = result.mutable_data_ptr<float>();
        for (int64_t j = 0; j < width; ++j) out[j] = static_cast<float>(sums[j]);
        return result;
    };
    return {to_x, wanted[1] ? rounded(to_weight) : Tensor(), wanted[2] ? rounded(to_bias) : Tensor()};
}

}  // namespace

OPWRIGHT_IMPL(trap_affine_norm, CPU, m) {
    m.impl("affine_norm", OPWRIGHT_FN(affine_norm));
    m.impl("affine_norm_backward", OPWRIGHT_FN(affine_norm_backward));
}
