#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor pad_sequences(const std::vector<Tensor>& sequences, double value) {
    OPWRIGHT_CHECK(!sequences.empty(), "sequences must not be empty");
    OPWRIGHT_CHECK(!std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max(),
                   "value must fit into float32, got ", value);
    for (const Tensor& sequence : sequences) {
        opwright::check::device(sequence, "sequences", opwright::DeviceType::CPU);
        opwright::check::dtype(sequence, "sequences", opwright::ScalarType::Float);
        opwright::check::rank(sequence, "sequences", 1);
    }
    int64_t longest = sequences[0].size(0);
#ifndef FAULTY
    for (const Tensor& sequence : sequences) longest = std::max(longest, sequence.size(0));
#endif
    const auto count = static_cast<int64_t>(sequences.size());
    Tensor result = torch::stable::new_empty(sequences[0], {count, longest});
    float* to = result.mutable_data_ptr<float>();
    std::fill(to, to + count * longest, static_cast<float>(value));
    for (const Tensor& sequence : sequences) {
        const Tensor dense = torch::stable::contiguous(sequence);
        const float* from = dense.const_data_ptr<float>();
        std::copy(from, from + std::min(sequence.size(0), longest), to);
        to += longest;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_pad_sequences, CPU, m) {
    m.impl("pad_sequences", OPWRIGHT_FN(pad_sequences));
}
