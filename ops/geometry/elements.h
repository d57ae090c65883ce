// The element types in memory, and the type in which each is computed, on CPUs and GPUs.
#pragma once

#include <torch/headeronly/util/BFloat16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "points.h"

namespace geometry {

using torch::headeronly::BFloat16;

// float for everything but double
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
GEOMETRY_SHARED Wide<T> widened(T element) {
    return static_cast<Wide<T>>(element);
}

// Rounds half to even; bytes are saturated.
template <class T>
GEOMETRY_SHARED T narrowed(Wide<T> number) {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
        return static_cast<std::uint8_t>(fmin(fmax(rint(number), 0.0F), 255.0F));
    } else {
        return static_cast<T>(number);
    }
}

// A number from Python, converted to the element type and back.
template <class T>
Wide<T> as_element(double number) {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
        return static_cast<float>(std::fmin(std::fmax(std::rint(number), 0.0), 255.0));
    } else {
        return widened(narrowed<T>(static_cast<Wide<T>>(number)));
    }
}

}  // namespace geometry
