// Trains a saved TorchScript model in a process without Python, through native operators and their native gradients.
//
// Every failure is one line on stderr and a distinct exit code.

#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>
#include <torch/script.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view usage = "usage: train MODEL.pt DATA.pt [TRAINED.pt]";

enum Exit { wrong_usage = 2, cannot_read = 3, cannot_train = 4, cannot_write = 5 };

struct Failure : std::runtime_error {
    Failure(Exit code, const std::string& message) : std::runtime_error(message), code(code) {}
    Exit code;
};

// The training data, as saved by prepare.py.
struct Data {
    at::Tensor images;   // (N, 8, 8)
    at::Tensor labels;   // (N)
    at::Tensor batches;  // (steps, B): indices of the images in each step
    double rate;
    double momentum;
};

// The line of a PyTorch error that states what is wrong. A stack trace follows it; in an error from a running model,
// the TorchScript source with a mark at the location comes before it.
std::string reason(const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
    constexpr std::string_view mark = "<--- HERE\n";
    if (const auto place = text.rfind(mark); place != std::string::npos) text.erase(0, place + mark.size());
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line) && (line.empty() || line.front() == ' ')) continue;
    return line;
}

Data load_data(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Failure(cannot_read, "data " + path + " cannot be read: does it exist?");
    try {
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        const torch::IValue saved = torch::jit::pickle_load(bytes);
        const auto parts = saved.isList() ? saved.toListRef() : c10::ArrayRef<torch::IValue>();
        if (parts.size() != 5 || !parts[0].isTensor() || !parts[1].isTensor() || !parts[2].isTensor() ||
            !parts[3].isDouble() || !parts[4].isDouble())
            throw std::runtime_error("expected a list of images, labels, batches, learning rate and momentum");
        return {parts[0].toTensor(), parts[1].toTensor(), parts[2].toTensor(), parts[3].toDouble(),
                parts[4].toDouble()};
    } catch (const std::exception& error) {
        throw Failure(cannot_read, "data " + path + " was not saved by prepare.py: " + reason(error));
    }
}

torch::jit::Module load_model(const std::string& path) {
    try {
        return torch::jit::load(path);
    } catch (const std::exception& error) {
        throw Failure(cannot_read, "model " + path + " cannot be read: " + reason(error));
    }
}

void train(torch::jit::Module& model, const Data& data) {
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& parameter : model.parameters()) parameters.push_back(parameter);
    torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(data.rate).momentum(data.momentum));
    model.train();
    for (int64_t step = 0; step < data.batches.size(0); ++step) {
        const at::Tensor batch = data.batches[step];
        optimizer.zero_grad();
        const at::Tensor logits = model.forward({data.images.index_select(0, batch)}).toTensor();
        const at::Tensor loss = at::cross_entropy_loss(logits, data.labels.index_select(0, batch));
        loss.backward();
        optimizer.step();
        std::cout << "{\"step\": " << step + 1 << ", \"loss\": " << loss.item<float>() << "}\n";
    }
    if (!std::cout.flush()) throw Failure(cannot_write, "the losses cannot be written");
}

void save(const torch::jit::Module& model, const std::string& path) {
    const std::string part = path + ".part";  // renamed when complete, so that no partial file is visible
    std::error_code error;
    try {
        model.save(part);
        std::filesystem::rename(part, path);
    } catch (const std::exception& failed) {
        std::filesystem::remove(part, error);
        throw Failure(cannot_write, "the trained model cannot be written to " + path + ": " + reason(failed));
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3 || argc > 4) throw Failure(wrong_usage, std::string(usage));
        torch::jit::Module model = load_model(argv[1]);
        const Data data = load_data(argv[2]);
        at::set_num_threads(1);  // a step of this size is shorter than synchronizing threads
        std::cout << std::setprecision(std::numeric_limits<float>::max_digits10);
        train(model, data);
        if (argc == 4) save(model, argv[3]);
        return EXIT_SUCCESS;
    } catch (const Failure& failure) {
        std::cerr << program_invocation_short_name << ": " << failure.what() << '\n';
        return failure.code;
    } catch (const std::exception& error) {
        std::cerr << program_invocation_short_name << ": training failed: " << reason(error) << '\n';
        return cannot_train;
    }
}
