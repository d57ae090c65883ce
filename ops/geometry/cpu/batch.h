// A batch of images and the homographies that warp them.
#pragma once

#include <cstdint>
#include <vector>

#include "../options.h"
#include "../pixel.h"
#include "../points.h"

namespace geometry {

template <class T>
struct Batch {
    const T* images;
    Layout layout;
    const std::vector<double>& matrices;  // nine numbers for all images, or for each
    Options options;

    const T* image(int64_t number) const { return images + number * layout.image_stride; }
    const double* homography(int64_t number) const { return matrices.data() + (matrices.size() == 9 ? 0 : 9 * number); }

    Source<T> source(const T* image) const { return {image, layout, options.padding, as_element<T>(options.fill)}; }
};

}  // namespace geometry
