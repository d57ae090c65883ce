// An operator in the style of the tutorials: the full torch API, one TORCH_LIBRARY, a fixed output size.
#include <torch/script.h>

#include <opencv2/imgproc.hpp>

namespace {

torch::Tensor warp_perspective(const torch::Tensor& image, const torch::Tensor& warp) {
    cv::Mat source(static_cast<int>(image.size(0)), static_cast<int>(image.size(1)), CV_32FC1, image.data_ptr<float>());
    cv::Mat matrix(static_cast<int>(warp.size(0)), static_cast<int>(warp.size(1)), CV_32FC1, warp.data_ptr<float>());
    torch::Tensor output = torch::empty({8, 8}, torch::kFloat32);
    cv::Mat target(8, 8, CV_32FC1, output.data_ptr<float>());
    cv::warpPerspective(source, target, matrix, target.size());
    return output;
}

TORCH_LIBRARY(my_ops, m) {
    m.def("warp_perspective", &warp_perspective);
}

}  // namespace
