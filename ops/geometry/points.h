// The points of the output's pixels in the image, on CPUs and GPUs. Without PyTorch.
//
// The operations are those of op.py, in the same order and rounded one by one, so that every device and every vector
// width finds the same points.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define GEOMETRY_SHARED __host__ __device__ inline
#else
#define GEOMETRY_SHARED inline
#endif

namespace geometry {

// A point further away has no pixels nearby.
constexpr double max_coordinate = 1 << 30;

struct Point {
    double x, y, one_over_w;
    bool is_near;
};

// A linear function of the column.
struct Line {
    double slope = 0, start = 0;

    GEOMETRY_SHARED double at(double u) const { return slope * u + start; }
};

// The three lines whose quotients are the points of one row of the output.
struct Row {
    Line x, y, w;

    Row() = default;
    GEOMETRY_SHARED Row(const double* homography, int64_t row)
        : x(line(homography, row)), y(line(homography + 3, row)), w(line(homography + 6, row)) {}

    GEOMETRY_SHARED Point at(int64_t column) const {
        const auto u = static_cast<double>(column);
        const double one_over_w = 1 / w.at(u);
        const double x_at = x.at(u) * one_over_w;
        const double y_at = y.at(u) * one_over_w;
        // A comparison with NaN is false, and zero times infinity is NaN.
        const bool is_near = fabs(x_at) <= max_coordinate && fabs(y_at) <= max_coordinate;
        return {x_at, y_at, one_over_w, is_near};
    }

  private:
    GEOMETRY_SHARED static Line line(const double* h, int64_t row) {
        return {h[0], h[1] * static_cast<double>(row) + h[2]};
    }
};

}  // namespace geometry
