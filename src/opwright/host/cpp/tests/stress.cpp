// Loads bundles from several threads at the same time and runs them from all of them. Every result must equal, bit for
// bit, the result of a single thread.
//
//     stress [--plant-a-race] RUNS BUNDLE...      RUNS per thread, float32 inputs only
//
// Build it with -fsanitize=thread from the host's own sources. --plant-a-race shows that a race is detected.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "opwright/host.h"
#include "program/runs.h"

namespace {

using opwright::Model;
using Tensors = std::vector<at::Tensor>;

constexpr int threads = 8;
constexpr int variants = 4;
int racing = 0;

// The smallest sizes that the bundle allows, and a few larger ones.
Tensors random_inputs(const Model& model, int variant) {
    std::mt19937 random(static_cast<unsigned>(variant));
    Tensors inputs;
    for (const opwright::Input& input : model.inputs()) {
        std::vector<int64_t> sizes;
        for (const opwright::Dimension& dim : input.dims)
            sizes.push_back(std::min(dim.min + variant, dim.max.value_or(dim.min + variant)));
        at::Tensor tensor = at::empty(sizes, at::kFloat);
        auto* values = tensor.mutable_data_ptr<float>();
        for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(random() % 1000) / 1000;
        inputs.push_back(tensor);
    }
    return inputs;
}

bool same_bits(const Tensors& some, const Tensors& others) {
    bool same = some.size() == others.size();
    for (size_t i = 0; same && i < some.size(); ++i)
        same = some[i].sizes() == others[i].sizes() && some[i].is_contiguous() && others[i].is_contiguous() &&
               std::memcmp(some[i].const_data_ptr(), others[i].const_data_ptr(), some[i].nbytes()) == 0;
    return same;
}

// One of the bundles, and the results of a single thread.
struct Loaded {
    std::string folder;
    Model model;
    std::vector<Tensors> wanted;
};

bool is_refused(const Model& model) {
    try {
        model.run(Tensors{at::empty({1}, at::kLong)});
        return false;
    } catch (const opwright::Error&) {
        return true;
    }
}

void require_success(const std::function<void()>& work) {
    try {
        work();
    } catch (const opwright::Error& error) {
        std::cerr << error.what() << std::endl;
        std::_Exit(EXIT_FAILURE);
    }
}

void run_together(const std::vector<std::function<void()>>& works) {
    std::vector<std::thread> all;
    for (const auto& work : works) all.emplace_back([&work] { require_success(work); });
    for (std::thread& one : all) one.join();
}

std::vector<Loaded> load_concurrently(const std::vector<std::string>& folders) {
    std::vector<std::optional<Model>> models(threads);
    std::vector<std::function<void()>> works;
    for (size_t i = 0; i < models.size(); ++i)
        works.emplace_back([&, i] { models[i] = Model::load(folders[i % folders.size()], {threads}); });
    run_together(works);
    std::vector<Loaded> loaded;
    for (size_t i = 0; i < folders.size(); ++i) {
        loaded.push_back({folders[i], *models[i], {}});
        for (int variant = 0; variant < variants; ++variant)
            loaded.back().wanted.push_back(models[i]->run(random_inputs(*models[i], variant)));
    }
    return loaded;
}

// Runs from all threads while one of them loads and unloads. Returns the number of results that differ.
int run_concurrently(const std::vector<Loaded>& loaded, int runs, bool plant_a_race) {
    std::atomic<int> wrong = 0;
    std::vector<std::function<void()>> works;
    for (int thread = 0; thread < threads; ++thread)
        works.emplace_back([&, thread] {
            for (int run = 0; run < runs; ++run) {
                const Loaded& one = loaded[static_cast<size_t>(thread + run) % loaded.size()];
                const int variant = run / 2 % variants;
                if (!same_bits(one.model.run(random_inputs(one.model, variant)),
                               one.wanted[static_cast<size_t>(variant)]))
                    ++wrong;
                if (run % 10 == 0 && !is_refused(one.model)) ++wrong;
                if (thread == 0 && run % 50 == 0) Model::load(one.folder);
                if (plant_a_race) ++racing;
            }
        });
    run_together(works);
    return wrong;
}

// The same values with other strides, which the code of a package does not check.
int run_with_other_strides(const std::vector<Loaded>& loaded) {
    int wrong = 0;
    for (const Loaded& one : loaded) {
        Tensors inputs = random_inputs(one.model, variants - 1);
        for (at::Tensor& input : inputs) input = input.transpose(0, -1).contiguous().transpose(0, -1);
        if (inputs.front().is_contiguous()) ++wrong;  // nothing would be tested
        const Tensors found = one.model.run(inputs);
        for (size_t i = 0; i < found.size(); ++i)
            if (!found[i].allclose(one.wanted.back()[i], 1e-4, 1e-5)) ++wrong;
    }
    return wrong;
}

// The same through the program's handling of a list of requests.
int run_as_requests(const std::vector<Loaded>& loaded, int runs) {
    int wrong = 0;
    for (const Loaded& one : loaded) {
        std::vector<opwright::host::Request> requests;
        for (int variant = 0; variant < variants; ++variant) requests.push_back({std::to_string(variant), "", {}});
        opwright::host::Options options;
        options.repeat = threads;
        options.runners = threads;
        // Repeatedly, because threads interact at the start and end of a list.
        for (int list = 0; list < runs / variants; ++list) {
            const auto found = run_all(one.model, requests, options, [&](const auto& request, auto& answer) {
                const auto variant = static_cast<size_t>(std::stoi(request.name));
                if (answer.error || !answer.repeats || !same_bits(answer.outputs, one.wanted[variant])) ++wrong;
            });
            if (found.seconds.size() != requests.size() * threads) ++wrong;
        }
    }
    return wrong;
}

}  // namespace

// Replaces the program's file reader with random numbers.
std::vector<at::Tensor> opwright::host::read_inputs(const Request& request, const Model& model) {
    return random_inputs(model, std::stoi(request.name));
}

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool plant_a_race = !words.empty() && words[0] == "--plant-a-race";
    if (plant_a_race) words.erase(words.begin());
    if (words.size() < 2) {
        std::cerr << "usage: stress [--plant-a-race] RUNS BUNDLE..." << std::endl;
        return 2;
    }
    const int runs = std::stoi(words[0]);
    words.erase(words.begin());
    at::set_num_threads(1);
    const std::vector<Loaded> loaded = load_concurrently(words);
    const int wrong =
        run_concurrently(loaded, runs, plant_a_race) + run_with_other_strides(loaded) + run_as_requests(loaded, runs);
    std::cout << threads << " threads, " << runs << " runs of each, " << wrong << " wrong" << std::endl;
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
