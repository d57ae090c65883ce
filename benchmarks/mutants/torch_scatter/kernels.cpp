// Kernels of torch-scatter as operators, with the argument checks that they lack.

#include <segment_csr_cpu.h>
#include <torch/library.h>

namespace {

using at::Tensor;

void check(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    TORCH_CHECK(indptr.scalar_type() == at::kLong, "indptr must be int64, got ", indptr.scalar_type());
    TORCH_CHECK(indptr.dim() > 0 && indptr.size(-1) > 1, "indptr must hold the ends of one segment or more, got sizes ",
                indptr.sizes());
    TORCH_CHECK(!out || out->scalar_type() == src.scalar_type(), "out must have the dtype of src, ", src.scalar_type());
    TORCH_CHECK(!out || out->dim() == src.dim(), "out must have the dimensions of src, ", src.dim());
}

// The kernels write to `out` and return it, and do not change it if there is nothing to write.
std::optional<Tensor> fresh(const std::optional<Tensor>& out) {
    return out ? std::optional(at::zeros(out->sizes(), out->options())) : std::nullopt;
}

Tensor reduced(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out, const char* reduce) {
    check(src, indptr, out);
    return std::get<0>(segment_csr_cpu(src, indptr.contiguous(), fresh(out), reduce));
}

std::tuple<Tensor, Tensor> chosen(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out,
                                  const char* reduce) {
    check(src, indptr, out);
    const auto [values, places] = segment_csr_cpu(src, indptr.contiguous(), fresh(out), reduce);
    return {values, *places};
}

Tensor segment_sum(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    return reduced(src, indptr, out, "sum");
}

Tensor segment_mean(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    return reduced(src, indptr, out, "mean");
}

std::tuple<Tensor, Tensor> segment_min(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    return chosen(src, indptr, out, "min");
}

std::tuple<Tensor, Tensor> segment_max(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    return chosen(src, indptr, out, "max");
}

Tensor gather(const Tensor& src, const Tensor& indptr, const std::optional<Tensor>& out) {
    check(src, indptr, out);
    const int64_t size = src.numel() ? indptr.flatten()[-1].item<int64_t>() : 0;
    TORCH_CHECK(!out || out->size(indptr.dim() - 1) == size, "out must have ", size, " elements, as indptr requires");
    return gather_csr_cpu(src, indptr.contiguous(), fresh(out));
}

}  // namespace

TORCH_LIBRARY_IMPL(segments, CPU, m) {
    m.impl("segment_sum", &segment_sum);
    m.impl("segment_mean", &segment_mean);
    m.impl("segment_min", &segment_min);
    m.impl("segment_max", &segment_max);
    m.impl("gather", &gather);
}
