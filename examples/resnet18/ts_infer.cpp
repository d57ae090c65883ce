// Loads a TorchScript classifier, runs it on noise, and prints the top classes.

#include <torch/script.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

namespace {

enum Exit { wrong_usage = 2, cannot_read = 3, cannot_run = 4, cannot_write = 5 };

// The line of a PyTorch error that describes the problem. When a model fails, its TorchScript source comes first, with
// a mark at the failing expression.
std::string reason(const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    std::string line, text = of_torch ? of_torch->what_without_backtrace() : error.what();
    if (text.starts_with("The following operation failed")) text.erase(0, text.find('\n', text.rfind("<--- HERE")));
    std::istringstream lines(text);
    while (std::getline(lines, line) && (line.empty() || line.front() == ' ')) continue;
    return line;
}

int failed(Exit code, const std::string& message) {
    std::cerr << program_invocation_short_name << ": " << message << '\n';
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return failed(wrong_usage, "usage: ts-infer MODEL.pt");
    const std::string path = argv[1];
    torch::jit::Module model;
    try {
        model = torch::jit::load(path);
        model.eval();
    } catch (const std::exception& error) {
        return failed(cannot_read, "model " + path + " cannot be read: " + reason(error));
    }
    try {
        const torch::NoGradGuard no_grad;
        at::manual_seed(0);
        const at::Tensor logits = model.forward({at::rand({1, 3, 224, 224})}).toTensor();
        const auto [scores, classes] = logits.softmax(1).topk(5);
        for (int64_t i = 0; i < 5; ++i)
            std::cout << classes[0][i].item<int64_t>() << ' ' << scores[0][i].item<float>() << '\n';
    } catch (const std::exception& error) {
        return failed(cannot_run,
                      "model " + path + " is not a classifier of images (N, 3, 224, 224): " + reason(error));
    }
    return std::cout.flush() ? EXIT_SUCCESS : failed(cannot_write, "the classes cannot be written");
}
