#include "engine/dtypes.h"

namespace opwright::host {

std::string dtype_name(at::ScalarType dtype) {
    switch (dtype) {  // dtypes whose C++ names differ
        case at::kByte:
            return "uint8";
        case at::kChar:
            return "int8";
        case at::kShort:
            return "int16";
        case at::kInt:
            return "int32";
        case at::kLong:
            return "int64";
        case at::kHalf:
            return "float16";
        case at::kFloat:
            return "float32";
        case at::kDouble:
            return "float64";
        case at::kComplexHalf:
            return "complex32";
        case at::kComplexFloat:
            return "complex64";
        case at::kComplexDouble:
            return "complex128";
        default:
            break;
    }
    std::string name = c10::toString(dtype);
    for (char& letter : name)
        if ('A' <= letter && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return name;
}

at::ScalarType dtype_from_name(const std::string& name) {
    for (int number = 0; number < static_cast<int>(at::ScalarType::NumOptions); ++number)
        if (const auto dtype = static_cast<at::ScalarType>(number);
            dtype != at::ScalarType::Undefined && dtype_name(dtype) == name)
            return dtype;
    return at::ScalarType::Undefined;
}

}  // namespace opwright::host
