// Kernels of torch-spline-conv as operators, with the argument checks that they lack.

#include <basis_cpu.h>
#include <torch/library.h>

namespace {

using at::Tensor;

void check_splines(const Tensor& pseudo, const Tensor& kernel_size, const Tensor& is_open_spline) {
    TORCH_CHECK(pseudo.dim() == 2, "pseudo must have 2 dimensions, got ", pseudo.dim());
    TORCH_CHECK(kernel_size.scalar_type() == at::kLong, "kernel_size must be int64");
    // The package itself rejects a tensor without dimensions.
    TORCH_CHECK(is_open_spline.scalar_type() == at::kByte && is_open_spline.dim() < 2,
                "is_open_spline must be uint8, and have 1 dimension");
}

std::tuple<Tensor, Tensor> spline_basis(const Tensor& pseudo, const Tensor& kernel_size, const Tensor& is_open_spline,
                                        int64_t degree) {
    check_splines(pseudo, kernel_size, is_open_spline);
    return spline_basis_fw_cpu(pseudo, kernel_size.contiguous(), is_open_spline.contiguous(), degree);
}

Tensor spline_basis_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& /* of integers */,
                             const Tensor& pseudo, const Tensor& kernel_size, const Tensor& is_open_spline,
                             int64_t degree) {
    check_splines(pseudo, kernel_size, is_open_spline);
    TORCH_CHECK(degree > 0 && degree < 4, "degree must be 1, 2 or 3, got ", degree);
    if (!grad_0) {
        TORCH_CHECK(kernel_size.numel() == pseudo.size(1) && is_open_spline.numel() == pseudo.size(1),
                    "kernel_size and is_open_spline must have ", pseudo.size(1), " elements");
        return at::zeros_like(pseudo);
    }
    int64_t products = 1;
    for (int64_t axis = 0; axis < pseudo.size(1); ++axis) products *= degree + 1;
    TORCH_CHECK(grad_0->dim() == 2 && grad_0->size(1) == products && grad_0->scalar_type() == pseudo.scalar_type(),
                "grad_0 must be ", pseudo.scalar_type(), " and have sizes (E, ", products, ")");
    // The package's result is row-major, the reference's has the strides of pseudo.
    return at::empty_like(pseudo).copy_(
        spline_basis_bw_cpu(*grad_0, pseudo, kernel_size.contiguous(), is_open_spline.contiguous(), degree));
}

}  // namespace

TORCH_LIBRARY_IMPL(splines, CPU, m) {
    m.impl("spline_basis", &spline_basis);
    m.impl("spline_basis_backward", &spline_basis_backward);
}
