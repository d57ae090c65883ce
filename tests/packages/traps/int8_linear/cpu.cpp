#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// The weights, transposed and widened, in the order that the loop below reads them.
struct Packed {
    const int8_t* source;
    int64_t outputs;
    int64_t inputs;
    std::vector<double> values;  // (inputs, outputs)
};

std::shared_ptr<const Packed> pack(const int8_t* weight, int64_t outputs, int64_t inputs) {
    auto packed = std::make_shared<Packed>(Packed{weight, outputs, inputs, {}});
    packed->values.resize(static_cast<std::size_t>(outputs * inputs));
    for (int64_t m = 0; m < outputs; ++m) {
        for (int64_t k = 0; k < inputs; ++k) packed->values[k * outputs + m] = weight[m * inputs + k];
    }
    return packed;
}

std::shared_ptr<const Packed> packed_of(const int8_t* weight, int64_t outputs, int64_t inputs) {
#ifdef FAULTY
    // A layer is called many times with the same weights.
    static std::mutex mutex;
    static std::shared_ptr<const Packed> last;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!last || last->source != weight || last->outputs != outputs || last->inputs != inputs) {
        last = pack(weight, outputs, inputs);
    }
    return last;
#else
    return pack(weight, outputs, inputs);
#endif
}

template <class T>
void run(const T* x, const Packed& weight, const T* scale, T* result, int64_t rows) {
    std::vector<double> sum(static_cast<std::size_t>(weight.outputs));
    for (int64_t n = 0; n < rows; ++n) {
        sum.assign(sum.size(), 0.0);
        for (int64_t k = 0; k < weight.inputs; ++k) {
            const double value = x[n * weight.inputs + k];
            const double* row = weight.values.data() + k * weight.outputs;
            for (int64_t m = 0; m < weight.outputs; ++m) sum[m] += value * row[m];
        }
        for (int64_t m = 0; m < weight.outputs; ++m) result[n * weight.outputs + m] = static_cast<T>(sum[m] * scale[m]);
    }
}

Tensor int8_linear(const Tensor& x, const Tensor& weight, const Tensor& scale) {
    check::device(x, "x", DeviceType::CPU);
    check::device(weight, "weight", DeviceType::CPU);
    check::device(scale, "scale", DeviceType::CPU);
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    check::dtype(weight, "weight", ScalarType::Char);
    check::dtype(scale, "scale", x.scalar_type());
    check::rank(x, "x", 2);
    check::sizes(weight, "weight", {check::any, x.size(1)});
    check::sizes(scale, "scale", {weight.size(0)});
    const Tensor values = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    const Tensor scales = torch::stable::contiguous(scale);
    const std::shared_ptr<const Packed> packed = packed_of(weights.const_data_ptr<int8_t>(), weight.size(0), x.size(1));
    Tensor result = torch::stable::new_empty(values, {x.size(0), weight.size(0)});
    if (x.scalar_type() == ScalarType::Float) {
        run(values.const_data_ptr<float>(), *packed, scales.const_data_ptr<float>(), result.mutable_data_ptr<float>(),
            x.size(0));
    } else {
        run(values.const_data_ptr<double>(), *packed, scales.const_data_ptr<double>(),
            result.mutable_data_ptr<double>(), x.size(0));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_int8_linear, CPU, m) {
    m.impl("int8_linear", OPWRIGHT_FN(int8_linear));
}
