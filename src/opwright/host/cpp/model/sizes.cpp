#include "model/sizes.h"

namespace opwright::host {

std::string to_string(const Dimension& dim) {
    if (dim.max && *dim.max == dim.min) return std::to_string(dim.min);
    return std::to_string(dim.min) + ".." + (dim.max ? std::to_string(*dim.max) : "");
}

std::string to_string(const std::vector<Dimension>& dims) {
    std::string all;
    for (const Dimension& dim : dims) all += (all.empty() ? "" : ", ") + to_string(dim);
    return "(" + all + ")";
}

std::string to_string(c10::IntArrayRef sizes) {
    std::string all;
    for (const int64_t size : sizes) all += (all.empty() ? "" : ", ") + std::to_string(size);
    return "(" + all + ")";
}

}  // namespace opwright::host
