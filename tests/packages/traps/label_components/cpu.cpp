#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

struct Labels {
    const uint8_t* mask;
    int64_t* labels;
    int64_t rows;
    int64_t cols;

    bool is_open(int64_t y, int64_t x) const {
        return y >= 0 && y < rows && x >= 0 && x < cols && mask[y * cols + x] != 0 && labels[y * cols + x] == 0;
    }

#ifdef FAULTY
    void fill(int64_t y, int64_t x, int64_t label) {
        if (!is_open(y, x)) return;
        labels[y * cols + x] = label;
        fill(y, x + 1, label);
        fill(y + 1, x, label);
        fill(y, x - 1, label);
        fill(y - 1, x, label);
    }
#else
    std::vector<int64_t> waiting;

    void visit(int64_t y, int64_t x, int64_t label) {
        if (!is_open(y, x)) return;
        labels[y * cols + x] = label;
        waiting.push_back(y * cols + x);
    }

    void fill(int64_t y, int64_t x, int64_t label) {
        visit(y, x, label);
        while (!waiting.empty()) {
            const int64_t at = waiting.back();
            waiting.pop_back();
            visit(at / cols, at % cols + 1, label);
            visit(at / cols + 1, at % cols, label);
            visit(at / cols, at % cols - 1, label);
            visit(at / cols - 1, at % cols, label);
        }
    }
#endif
};

Tensor label_components(const Tensor& mask) {
    check::device(mask, "mask", DeviceType::CPU);
    check::dtype(mask, "mask", ScalarType::Byte);
    check::rank(mask, "mask", 2);
    const Tensor from = torch::stable::contiguous(mask);
    Tensor result = torch::stable::new_empty(from, from.sizes(), ScalarType::Long);
    Labels image{};
    image.mask = from.const_data_ptr<uint8_t>();
    image.labels = result.mutable_data_ptr<int64_t>();
    image.rows = from.size(0);
    image.cols = from.size(1);
    std::fill(image.labels, image.labels + from.numel(), int64_t{0});
    for (int64_t y = 0; y < image.rows; ++y) {
        for (int64_t x = 0; x < image.cols; ++x) image.fill(y, x, y * image.cols + x + 1);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_label_components, CPU, m) {
    m.impl("label_components", OPWRIGHT_FN(label_components));
}
