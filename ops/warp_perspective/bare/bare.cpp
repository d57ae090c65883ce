// A C interface of only cv::warpPerspective, which the operator is compared with and measured against.
#include <chrono>
#include <cstddef>
#include <opencv2/imgproc.hpp>
#include <string>

/// An image for OpenCV: `type` is CV_MAKETYPE(depth, channels), `step` the bytes from row to row.
struct BareImage {
    void* data;
    int rows;
    int cols;
    int type;
    std::size_t step;
};

/// Warps `source` into the memory of `target`, `repeats` times; `seconds`, unless null, receives the time of each.
/// Returns null, or OpenCV's error (valid until the thread's next call).
extern "C" __attribute__((visibility("default"))) const char* bare_warp_perspective(
    const BareImage* source, const BareImage* target, const double* matrix, int flags, int border_mode,
    const double* border_value, int repeats, double* seconds) {
    using clock = std::chrono::steady_clock;
    thread_local std::string failure;
    try {
        const cv::Mat from(source->rows, source->cols, source->type, source->data, source->step);
        cv::Mat into(target->rows, target->cols, target->type, target->data, target->step);
        const cv::Matx33d warp(matrix);
        const cv::Scalar border(border_value[0], border_value[1], border_value[2], border_value[3]);
        for (int i = 0; i < repeats; ++i) {
            const clock::time_point start = clock::now();
            cv::warpPerspective(from, into, warp, into.size(), flags, border_mode, border);
            if (seconds != nullptr) {
                seconds[i] = std::chrono::duration<double>(clock::now() - start).count();
            }
        }
        if (into.data != target->data) {
            failure = "cv::warpPerspective did not write to the target but allocated other memory";
            return failure.c_str();
        }
        return nullptr;
    } catch (const std::exception& error) {
        failure = error.what();
        return failure.c_str();
    }
}
