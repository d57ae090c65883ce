#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

template <class To, class From>
void put(const Tensor& feature, To* into, int64_t tokens) {
    const From* from = feature.const_data_ptr<From>();
    const int64_t channels = feature.size(1), pixels = feature.size(2) * feature.size(3);
    for (int64_t n = 0; n < feature.size(0); ++n) {
        for (int64_t c = 0; c < channels; ++c) {
            for (int64_t p = 0; p < pixels; ++p) {
                into[(n * tokens + p) * channels + c] = static_cast<To>(from[(n * channels + c) * pixels + p]);
            }
        }
    }
}

template <class To>
Tensor flattened(const std::vector<Tensor>& features, ScalarType dtype) {
    int64_t tokens = 0;
    for (const Tensor& feature : features) tokens += feature.size(2) * feature.size(3);
    const int64_t channels = features[0].size(1);
    Tensor result = torch::stable::new_empty(features[0], {features[0].size(0), tokens, channels}, dtype);
    To* into = result.mutable_data_ptr<To>();
    int64_t first = 0;
    for (const Tensor& feature : features) {
        const Tensor source = torch::stable::contiguous(feature);
        if (feature.scalar_type() == ScalarType::Float) {
            put<To, float>(source, into + first * channels, tokens);
        } else {
            put<To, double>(source, into + first * channels, tokens);
        }
        first += feature.size(2) * feature.size(3);
    }
    return result;
}

Tensor flatten_levels(const std::vector<Tensor>& features) {
    OPWRIGHT_CHECK(!features.empty(), "features must have at least one feature map");
    bool is_double = false;
    for (const Tensor& feature : features) {
        check::dtype(feature, "features", {ScalarType::Float, ScalarType::Double});
        check::rank(feature, "features", 4);
        OPWRIGHT_CHECK(feature.size(0) == features[0].size(0) && feature.size(1) == features[0].size(1),
                       "features must have the same N and C, got ", features[0].sizes(), " and ", feature.sizes());
        is_double = is_double || feature.scalar_type() == ScalarType::Double;
    }
#ifdef FAULTY
    is_double = features[0].scalar_type() == ScalarType::Double;
#endif
    return is_double ? flattened<double>(features, ScalarType::Double) : flattened<float>(features, ScalarType::Float);
}

}  // namespace

OPWRIGHT_IMPL(trap_flatten_levels, CPU, m) {
    m.impl("flatten_levels", OPWRIGHT_FN(flatten_levels));
}
