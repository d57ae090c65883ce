#include "model/inputs.h"

#include <algorithm>

#include "engine/dtypes.h"
#include "model/sizes.h"

namespace opwright::host {
namespace {

std::string listed(const std::vector<Input>& inputs) {
    std::string names;
    for (const Input& input : inputs) names += (names.empty() ? "" : ", ") + input.name;
    return names.empty() ? "none" : names;
}

void check_input(const Input& expected, at::Device device, const at::Tensor& given) {
    const std::string what = "the input " + expected.name + " ";
    if (!given.defined()) throw Error(Code::input_unknown, what + "is an undefined tensor");
    if (given.scalar_type() != expected.dtype)
        throw Error(Code::input_dtype, what + "has the dtype " + dtype_name(given.scalar_type()) + "; expected " +
                                           dtype_name(expected.dtype));
    if (given.device() != device || given.layout() != at::kStrided)
        throw Error(Code::input_device,
                    what + "is a " + given.toString() + "; expected a strided tensor on " + device.str());
    if (given.dim() != static_cast<int64_t>(expected.dims.size()))
        throw Error(Code::input_rank, what + "has " + std::to_string(given.dim()) + " dimensions, " +
                                          to_string(given.sizes()) + "; expected " +
                                          std::to_string(expected.dims.size()) + ", " + to_string(expected.dims));
    for (size_t i = 0; i < expected.dims.size(); ++i) {
        const int64_t size = given.size(static_cast<int64_t>(i));
        const Dimension& dim = expected.dims[i];
        if (size < dim.min || (dim.max && size > *dim.max))
            throw Error(Code::input_size, what + "has the size " + std::to_string(size) + " in dimension " +
                                              std::to_string(i) + ", in " + to_string(given.sizes()) + "; expected " +
                                              to_string(dim) + ", in " + to_string(expected.dims));
    }
}

}  // namespace

void check_inputs(const std::vector<Input>& expected, at::Device device, const std::vector<at::Tensor>& given) {
    if (given.size() != expected.size())
        throw Error(Code::input_unknown, std::to_string(given.size()) + " inputs were given; expected " +
                                             std::to_string(expected.size()) + ": " + listed(expected));
    for (size_t i = 0; i < expected.size(); ++i) check_input(expected[i], device, given[i]);
}

void check_equal_dims(const Manifest& manifest, const std::vector<at::Tensor>& given) {
    const auto size_at = [&given](const Manifest::InputDim& one) {
        return given[one.input].size(static_cast<int64_t>(one.dim));
    };
    for (const std::vector<Manifest::InputDim>& group : manifest.equal_dims) {
        for (const Manifest::InputDim& one : group) {
            const Manifest::InputDim& first = group.front();
            if (size_at(one) == size_at(first)) continue;
            throw Error(Code::input_size, "the input " + manifest.inputs[one.input].name + " has the size " +
                                              std::to_string(size_at(one)) + " in dimension " +
                                              std::to_string(one.dim) + "; expected " + std::to_string(size_at(first)) +
                                              ", the size of dimension " + std::to_string(first.dim) +
                                              " of the input " + manifest.inputs[first.input].name);
        }
    }
}

std::vector<at::Tensor> inputs_by_name(const std::vector<Input>& expected,
                                       const std::map<std::string, at::Tensor>& given) {
    for (const auto& [name, tensor] : given)
        if (std::none_of(expected.begin(), expected.end(),
                         [&name = name](const Input& one) { return one.name == name; }))
            throw Error(Code::input_unknown, "the input " + name + " is unknown; expected " + listed(expected));
    std::vector<at::Tensor> inputs;
    for (const Input& one : expected) {
        const auto found = given.find(one.name);
        if (found == given.end())
            throw Error(Code::input_unknown, "the input " + one.name + " is missing; expected " + listed(expected));
        inputs.push_back(found->second);
    }
    return inputs;
}

}  // namespace opwright::host
