// Where tensors are among an operator's arguments.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opwright::autograd {

// Where an argument's elements are among the tensors that autograd is given: all but those that are not there.
struct Place {
    bool is_list;
    std::vector<bool> is_there;
};

// Whether an argument is a list of tensors, some of which may be None. Its type is asked, and not its value:
// TorchScript and Python do not give lists of None the same type.
inline bool is_list_of_tensors(const c10::Argument& argument) {
    const auto* list = argument.type()->castRaw<c10::ListType>();
    return list != nullptr && list->getElementType()->isSubtypeOf(*c10::OptionalType::ofTensor());
}

// Calls `act` with each element of a tensor argument; with an undefined tensor in place of a None.
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

// As many numbers: for each argument whether it is a list, how many elements it has, and which of them are there.
inline std::vector<std::int64_t> packed(const std::vector<Place>& places) {
    std::vector<std::int64_t> numbers;
    for (const Place& place : places) {
        numbers.push_back(place.is_list ? 1 : 0);
        numbers.push_back(static_cast<std::int64_t>(place.is_there.size()));
        for (const bool there : place.is_there) numbers.push_back(there ? 1 : 0);
    }
    return numbers;
}

inline std::vector<Place> unpacked(const std::vector<std::int64_t>& numbers) {
    std::vector<Place> places;
    for (auto at = numbers.begin(); at != numbers.end();) {
        Place& place = places.emplace_back();
        place.is_list = *at++ != 0;
        const auto count = *at++;
        place.is_there.assign(at, at + count);
        at += count;
    }
    return places;
}

}  // namespace opwright::autograd
