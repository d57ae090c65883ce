// Loops over the elements of tensors on the GPU, on PyTorch's current stream, with the formula as the kernel.
//
//     Tensor swiglu(const Tensor& gate, const Tensor& value) {
//         return opwright::cuda::elementwise<float, double, opwright::Half>(SwiGLU(), gate, value);
//     }
//
// The formula is a class as in opwright/formula.h, called with one number from each tensor. float16 and bfloat16 are
// computed in float. Everything else works as in opwright/parallel/elementwise.h: tensors have any strides and
// broadcast, results are new row-major tensors, and a formula returns one result or a tuple of which `wanted` selects
// some. nvcc needs --expt-relaxed-constexpr, which opwright passes.
#pragma once

#include <cuda_runtime.h>
#include <opwright/empty.h>
#include <opwright/formula.h>
#include <opwright/parallel/broadcast.h>
#include <opwright/parallel/dtypes.h>
#include <opwright/types.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace cuda {
namespace detail {

using opwright::detail::Rows;

constexpr int threads_per_block = 256;
constexpr std::int64_t most_blocks = 1 << 20;  // beyond this, each thread computes several elements
constexpr int most_dimensions = 8;

template <class T, std::size_t count>
struct Pointers {
    T* at[count];
};

// Where the elements of `count` tensors are, for each element of the result. Zero dimensions mean that all tensors are
// contiguous and have the same shape.
template <std::size_t count>
struct Places {
    int dimensions = 0;
    std::int64_t sizes[most_dimensions];
    std::int64_t strides[count][most_dimensions];

    __device__ std::int64_t of(std::size_t tensor, std::int64_t element) const {
        if (dimensions == 0) return element;
        std::int64_t place = 0;
        for (int d = dimensions - 1; d >= 0; --d) {
            place += element % sizes[d] * strides[tensor][d];
            element /= sizes[d];
        }
        return place;
    }
};

template <class Formula, class T, std::size_t results, std::size_t count, std::size_t... tensor>
__device__ void one_element(const Formula& formula, const Pointers<const T, count>& from,
                            const Pointers<T, results>& into, const Places<count>& places, std::int64_t element,
                            std::index_sequence<tensor...>) {
    const auto result = formula(static_cast<simd::Wide<T>>(from.at[tensor][places.of(tensor, element)])...);
    if constexpr (std::is_arithmetic_v<std::remove_cv_t<decltype(result)>>) {
        into.at[0][element] = static_cast<T>(result);
    } else {
        std::size_t k = 0;
        std::apply(
            [&](const auto&... each) {
                ((into.at[k] ? void(into.at[k][element] = static_cast<T>(each)) : void(), ++k), ...);
            },
            result);
    }
}

// Element indices have 64 bits, because 32 overflow at 2^31.
template <class Formula, class T, std::size_t results, std::size_t count>
__global__ void elementwise_kernel(Formula formula, Pointers<const T, count> from, Pointers<T, results> into,
                                   Places<count> places, std::int64_t size) {
    const std::int64_t step = gridDim.x * std::int64_t{blockDim.x};
    for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size; i += step) {
        one_element(formula, from, into, places, i, std::make_index_sequence<count>());
    }
}

template <std::size_t count>
Places<count> places_of(const Rows& rows) {
    Places<count> places;
    const std::size_t dimensions = rows.sizes.size() + 1;
    OPWRIGHT_CHECK(dimensions <= most_dimensions, "elementwise supports tensors with at most ", most_dimensions,
                   " dimensions that cannot be merged, got ", dimensions, ": call .contiguous() first");
    places.dimensions = static_cast<int>(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
        const bool is_last = d + 1 == dimensions;
        places.sizes[d] = is_last ? rows.row_size : rows.sizes[d];
        for (std::size_t t = 0; t < count; ++t) places.strides[t][d] = is_last ? rows.step[t] : rows.stride(t, d);
    }
    return places;
}

template <class T, std::size_t results, class Formula, std::size_t count>
std::array<Tensor, results> elementwise_as(const Formula& formula, const std::array<const Tensor*, count>& tensors,
                                           const std::array<bool, results>& wanted) {
    static_assert(count <= opwright::detail::most_tensors, "opwright: a loop accepts at most 16 tensors");
    const Tensor& first = *tensors[0];
    bool are_alike = true;
    for (const Tensor* tensor : tensors) {
        check::same_device(*tensor, "a tensor of elementwise", first, "the first");
        are_alike = are_alike && tensor->sizes().equals(first.sizes()) && tensor->is_contiguous();
    }
    std::vector<std::int64_t> shape(first.sizes().begin(), first.sizes().end());
    Places<count> places;
    if (!are_alike) {
        shape = opwright::detail::broadcast_sizes("elementwise", tensors);
        std::vector<Tensor> given;
        for (const Tensor* tensor : tensors) given.push_back(*tensor);
        places = places_of<count>(opwright::detail::rows_of(given, shape));
    }
    Pointers<const T, count> from;
    for (std::size_t t = 0; t < count; ++t) from.at[t] = static_cast<const T*>(tensors[t]->const_data_ptr());
    std::array<Tensor, results> made;
    Pointers<T, results> into{};
    for (std::size_t k = 0; k < results; ++k) {
        if (!wanted[k]) continue;
        made[k] = opwright::new_empty(first, shape);
        into.at[k] = static_cast<T*>(made[k].mutable_data_ptr());
    }
    std::int64_t size = 1;
    for (const std::int64_t one : shape) size *= one;
    if (size == 0) return made;  // CUDA rejects a launch of zero blocks
    const std::int64_t blocks = std::min(most_blocks, (size + threads_per_block - 1) / threads_per_block);
    // On another stream, the kernel would not wait for its arguments, nor its consumers for its results.
    const torch::stable::accelerator::DeviceGuard guard(first.get_device_index());
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(first.get_device_index(), &stream));
    elementwise_kernel<<<static_cast<unsigned>(blocks), threads_per_block, 0, static_cast<cudaStream_t>(stream)>>>(
        formula, from, into, places, size);
    STD_CUDA_KERNEL_LAUNCH_CHECK();  // a failed launch reports no error otherwise
    return made;
}

}  // namespace detail

// Returns a new tensor of formula(a, b, ...) for the elements a, b, ... of the broadcast tensors.
//
// Throws std::runtime_error if a tensor is not on the GPU of the first, if the tensors do not have one dtype among
// Types, or if their shapes do not broadcast.
template <class... Types, class Formula, class... Tensors>
Tensor elementwise(const Formula& formula, const Tensor& first, const Tensors&... others) {
    return opwright::detail::with_dtype<Types...>(
        "elementwise", DeviceType::CUDA, std::array<const Tensor*, 1 + sizeof...(Tensors)>{&first, &others...},
        [&](auto type) {
            using T = typename decltype(type)::Type;
            return detail::elementwise_as<T, 1>(
                formula, std::array<const Tensor*, 1 + sizeof...(Tensors)>{&first, &others...}, {true})[0];
        });
}

// The same for a formula that returns a std::tuple of numbers. Returns a std::tuple of tensors, undefined where
// `wanted` is false.
template <class... Types, class Formula, class... Tensors>
auto elementwise(const Formula& formula, const std::vector<bool>& wanted, const Tensor& first,
                 const Tensors&... others) {
    using Results = decltype(formula(std::declval<std::conditional_t<true, float, Tensors>>()..., 0.f));
    constexpr std::size_t results = std::tuple_size_v<Results>;
    OPWRIGHT_CHECK(wanted.size() == results, "wanted must have ", results, " flags, got ", wanted.size());
    std::array<bool, results> flags;
    std::copy(wanted.begin(), wanted.end(), flags.begin());
    const std::array<const Tensor*, 1 + sizeof...(Tensors)> tensors{&first, &others...};
    const std::array<Tensor, results> made =
        opwright::detail::with_dtype<Types...>("elementwise", DeviceType::CUDA, tensors, [&](auto type) {
            using T = typename decltype(type)::Type;
            return detail::elementwise_as<T, results>(formula, tensors, flags);
        });
    return std::apply([](const auto&... each) { return std::tuple(each...); }, made);
}

}  // namespace cuda
}  // namespace opwright OPWRIGHT_HIDDEN
