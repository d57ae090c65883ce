// Runs a bundle on zeros of the smallest sizes that it accepts, and prints the sizes of the outputs.
#include <ATen/ops/zeros.h>
#include <opwright/host.h>

#include <iostream>

int main(int argc, char** argv) try {
    const auto model = opwright::Model::load(argc > 1 ? argv[1] : "");
    std::vector<at::Tensor> inputs;
    for (const opwright::Input& input : model.inputs()) {
        std::vector<int64_t> sizes;
        for (const opwright::Dimension& dimension : input.dims) sizes.push_back(dimension.min);
        inputs.push_back(at::zeros(sizes, at::device(model.device()).dtype(input.dtype)));
    }
    for (const at::Tensor& output : model.run(inputs)) std::cout << output.sizes() << '\n';
} catch (const opwright::Error& error) {
    std::cerr << "app: " << error.what() << '\n';
    return static_cast<int>(error.code());
}
