// A projection.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

using Packed = std::vector<float>;

// The columns of the weights as rows, so that products read contiguous memory.
std::shared_ptr<const Packed> pack(const float* weight, int64_t features, int64_t outputs) {
    auto packed = std::make_shared<Packed>(static_cast<std::size_t>(features * outputs));
    for (int64_t f = 0; f < features; ++f) {
        for (int64_t o = 0; o < outputs; ++o) (*packed)[o * features + f] = weight[f * outputs + o];
    }
    return packed;
}

#ifdef FAULTY
std::shared_ptr<const Packed> packed_of(const float* weight, int64_t features, int64_t outputs) {
    static std::mutex mutex;
    static std::map<std::tuple<const float*, int64_t, int64_t>, std::shared_ptr<const Packed>> known;
    const std::lock_guard<std::mutex> lock(mutex);
    auto& packed = known[{weight, features, outputs}];
    if (!packed) packed = pack(weight, features, outputs);
    return packed;
}
#else
std::shared_ptr<const Packed> packed_of(const float* weight, int64_t features, int64_t outputs) {
    return pack(weight, features, outputs);
}
#endif

Tensor project(const Tensor& x, const Tensor& weight) {
    check::device(x, "x", DeviceType::CPU);
    check::device(weight, "weight", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(weight, "weight", ScalarType::Float);
    check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t features = x.size(1);
    check::sizes(weight, "weight", {features, check::any});
    const int64_t outputs = weight.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    const auto packed = packed_of(weights.const_data_ptr<float>(), features, outputs);
    Tensor result = torch::stable::new_empty(dense, {rows, outputs});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < outputs; ++o) {
            double sum = 0;
            for (int64_t f = 0; f < features; ++f) sum += double{from[r * features + f]} * (*packed)[o * features + f];
            into[r * outputs + o] = static_cast<float>(sum);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_memo_by_address, CPU, m) {
    m.impl("project", OPWRIGHT_FN(project));
}
