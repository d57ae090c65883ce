// Describes which tensors an operator receives in its arguments.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opwright::autograd {

// The elements of an argument that autograd receives: the defined ones. A single tensor counts as a list of one.
struct ArgumentLayout {
    bool is_list;
    std::vector<bool> defined;
};

// Whether an argument is a list of tensors, some of which may be None. This depends on its type, not its value, because
// lists of None have different types in TorchScript and Python.
inline bool is_list_of_tensors(const c10::Argument& argument) {
    const auto* list = argument.type()->castRaw<c10::ListType>();
    return list != nullptr && list->getElementType()->isSubtypeOf(*c10::OptionalType::ofTensor());
}

// Calls `act` with each element of a tensor argument, and with an undefined tensor in place of None.
template <class Act>
void for_each_tensor(const c10::IValue& value, Act&& act) {
    if (value.isTensor()) {
        act(value.toTensor());
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef())
            act(element.isTensor() ? element.toTensor() : at::Tensor());
    } else {
        act(at::Tensor());
    }
}

// Encodes layouts as integers, which a context can save: for each argument, whether it is a list, its number of
// elements, and which of them are defined.
inline std::vector<std::int64_t> pack(const std::vector<ArgumentLayout>& layouts) {
    std::vector<std::int64_t> numbers;
    for (const ArgumentLayout& layout : layouts) {
        numbers.push_back(layout.is_list ? 1 : 0);
        numbers.push_back(static_cast<std::int64_t>(layout.defined.size()));
        for (const bool is_defined : layout.defined) numbers.push_back(is_defined ? 1 : 0);
    }
    return numbers;
}

inline std::vector<ArgumentLayout> unpack(const std::vector<std::int64_t>& numbers) {
    std::vector<ArgumentLayout> layouts;
    for (auto at = numbers.begin(); at != numbers.end();) {
        ArgumentLayout& layout = layouts.emplace_back();
        layout.is_list = *at++ != 0;
        const auto count = *at++;
        layout.defined.assign(at, at + count);
        at += count;
    }
    return layouts;
}

}  // namespace opwright::autograd
