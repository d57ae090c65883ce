#include "model/outputs.h"

#include "engine/dtypes.h"
#include "model/sizes.h"

namespace opwright::host {
namespace {

std::vector<Dimension> ranges_of(const Output& output) {
    std::vector<Dimension> ranges;
    for (const std::optional<Dimension>& dim : output.dims) ranges.push_back(dim.value_or(Dimension{}));
    return ranges;
}

void check_output(const Output& expected, const at::Tensor& found) {
    const std::string what = "the output " + expected.name + " ";
    if (!found.defined()) throw Error(Code::run_failed, what + "is an undefined tensor");
    if (found.scalar_type() != expected.dtype)
        throw Error(Code::run_failed, what + "has the dtype " + dtype_name(found.scalar_type()) + "; expected " +
                                          dtype_name(expected.dtype));
    const std::vector<Dimension> ranges = ranges_of(expected);
    bool fits = found.dim() == static_cast<int64_t>(ranges.size());
    for (size_t i = 0; fits && i < ranges.size(); ++i) {
        const int64_t size = found.size(static_cast<int64_t>(i));
        fits = size >= ranges[i].min && (!ranges[i].max || size <= *ranges[i].max);
    }
    if (!fits)
        throw Error(Code::run_failed, what + "has the shape " + to_string(found.sizes()) + "; expected " +
                                          to_string(ranges) + ", as in the manifest");
}

}  // namespace

void check_outputs(const std::vector<Output>& expected, const std::vector<at::Tensor>& found) {
    if (found.size() != expected.size())
        throw Error(Code::run_failed, "the model returned " + std::to_string(found.size()) + " outputs; expected " +
                                          std::to_string(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) check_output(expected[i], found[i]);
}

}  // namespace opwright::host
