// The columns of an output row whose points are inside a rectangle of the image.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../points.h"
#include "../taps.h"

namespace geometry {

// Columns [begin, end)
struct Span {
    int64_t begin = 0, end = 0;
};

// Points with x in [left, right] and y in [top, bottom].
struct Rectangle {
    double left, right, top, bottom;
};

// The points whose taps are all inside the image. It ends one pixel earlier on the right, so that a load can read
// three.
template <int taps>
Rectangle all_taps_inside(const Layout& layout) {
    constexpr double before = taps_before(taps), after = taps == 4 ? 2 : 1;
    return {before, static_cast<double>(layout.columns) - after - 1, before, static_cast<double>(layout.rows) - after};
}

// Outside it, no tap is inside the image.
template <int taps>
Rectangle some_tap_inside(const Layout& layout) {
    constexpr double before = taps_before(taps) + 1, after = taps / 2 + 1;
    return {-after, static_cast<double>(layout.columns) + before, -after, static_cast<double>(layout.rows) + before};
}

// The columns of a row whose points are in a rectangle, found by solving for its sides.
//
// On a row, x and y are quotients of linear functions: while w keeps its sign, they are monotonic, and between their
// values at the two ends of a span. They are rounded, so limits have a margin.
class RowSpans {
  public:
    RowSpans(const Row& row, int64_t width) : row_(row), width_(width) {}

    // A span of columns whose points are all inside. If w keeps its sign on the row, it is the longest one except for
    // the margin.
    Span inside(const Rectangle& rectangle) const {
        const double sign = row_.w.at(static_cast<double>(width_ / 2)) < 0 ? -1 : 1;
        const Span span = solve(rectangle, sign, -margin);
        if (span.begin >= span.end) return {};
        const Point first = row_.at(span.begin), last = row_.at(span.end - 1);
        const bool holds = contains(rectangle, first) && contains(rectangle, last) && sign * first.one_over_w > 0 &&
                           sign * last.one_over_w > 0 &&
                           is_precise(rectangle, 1 / first.one_over_w, 1 / last.one_over_w);
        return holds ? span : Span{};
    }

    // A span outside which no column has its point inside.
    Span around(const Rectangle& rectangle) const {
        const double first = row_.w.at(0), last = row_.w.at(static_cast<double>(width_ - 1));
        const bool keeps_sign = (first > 0 && last > 0) || (first < 0 && last < 0);
        if (!keeps_sign || !is_precise(rectangle, first, last)) return {0, width_};
        return solve(rectangle, first < 0 ? -1 : 1, margin);
    }

  private:
    static constexpr double margin = 0x1p-10;

    static bool contains(const Rectangle& rectangle, const Point& point) {
        return point.x >= rectangle.left && point.x <= rectangle.right && point.y >= rectangle.top &&
               point.y <= rectangle.bottom;
    }

    // Whether rounding moves points near the rectangle by less than the margin, for w between these two values.
    bool is_precise(const Rectangle& rectangle, double first_w, double last_w) const {
        double farthest = 0;
        for (const double limit : {rectangle.left, rectangle.right, rectangle.top, rectangle.bottom}) {
            if (!std::isinf(limit)) farthest = std::max(farthest, std::abs(limit));
        }
        const double sum = std::max(magnitude(row_.x), magnitude(row_.y)) + farthest * magnitude(row_.w);
        // Not for infinite values, which have no roots.
        return std::isfinite(sum) && 0x1p-49 * sum <= margin * std::min(std::abs(first_w), std::abs(last_w));
    }

    double magnitude(const Line& line) const {
        return std::abs(line.slope) * static_cast<double>(width_) + std::abs(line.start);
    }

    // The columns with sign * w > 0 whose points are inside the rectangle, enlarged by `by`.
    Span solve(const Rectangle& rectangle, double sign, double by) const {
        double low = 0, high = static_cast<double>(width_ - 1);
        const auto keep = [&](const Line& line, double factor, double limit) {
            // factor * (line - limit * w) >= 0
            if (std::isinf(limit)) return;
            const double slope = factor * (line.slope - limit * row_.w.slope);
            const double start = factor * (line.start - limit * row_.w.start);
            const double root = -start / slope;
            if (slope > 0) {
                low = std::max(low, root);
            } else if (slope < 0) {
                high = std::min(high, root);
            } else if (!(start >= 0)) {
                high = -1;
            }
        };
        keep(row_.w, sign, 0);
        keep(row_.x, sign, rectangle.left - by);
        keep(row_.x, -sign, rectangle.right + by);
        keep(row_.y, sign, rectangle.top - by);
        keep(row_.y, -sign, rectangle.bottom + by);
        if (!(low <= high)) return {};
        if (by > 0) return {static_cast<int64_t>(low), static_cast<int64_t>(high) + 1};
        return {static_cast<int64_t>(std::ceil(low)), static_cast<int64_t>(high) + 1};
    }

    const Row& row_;
    int64_t width_;
};

}  // namespace geometry
