// The table of gradients and the operators that compute them, read from the operator libraries in this process.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "argument_layout.h"

namespace opwright::autograd {

// What a backward operator receives from the forward call: an argument or a result.
struct Saved {
    bool is_result;
    std::size_t index;
};

// An operator by name, looked up on first use, because it may be defined after the operator that refers to it.
class Handle {
  public:
    std::string name;

    const c10::OperatorHandle& operator*() {
        std::call_once(once_, [this] { found_ = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), ""); });
        return *found_;
    }

  private:
    std::once_flag once_;
    std::optional<c10::OperatorHandle> found_;
};

// One line of `opwright_gradients()`: "mine::scale mine::scale mine::scale_backward 0,2 0,1,r0 1". The fields are the
// operator, the one that is called in its place (usually itself), the backward of that one, its differentiable
// arguments, what it saves ("-" for nothing), and whether the backward receives a flag per argument: whether it needs
// a gradient. Graphs point to it, so it is never destroyed.
struct Gradient {
    std::string op;
    Handle forward;
    Handle backward;
    std::vector<std::size_t> differentiable;
    std::vector<Saved> saves;
    bool takes_needs_grad = false;
    std::vector<ArgumentLayout> simple_layouts;  // if each differentiable argument is one defined tensor
    std::string fits;                            // the line and the schemas: equal for a new build that fits old graphs
    std::atomic<bool> is_replaced = false;       // by a new build of the library that does not fit
};

inline std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
    return parts;
}

inline std::unique_ptr<Gradient> parse_gradient(const std::string& line) {
    auto gradient = std::make_unique<Gradient>();
    try {
        const std::vector<std::string> words = split(line, ' ');
        gradient->op = words.at(0);
        gradient->forward.name = words.at(1);
        gradient->backward.name = words.at(2);
        for (const std::string& index : split(words.at(3), ',')) gradient->differentiable.push_back(std::stoul(index));
        for (const std::string& saved : split(words.at(4), ',')) {
            const bool is_result = saved.starts_with('r');
            if (saved != "-") gradient->saves.push_back({is_result, std::stoul(saved.substr(is_result ? 1 : 0))});
        }
        gradient->takes_needs_grad = words.at(5) == "1";
        if (gradient->op.find("::") == std::string::npos) throw std::invalid_argument(gradient->op);
    } catch (const std::logic_error&) {  // not a number, or too few words
        throw std::runtime_error("the gradient \"" + line + "\" cannot be parsed: rebuild its library");
    }
    gradient->simple_layouts.assign(gradient->differentiable.size(), ArgumentLayout{false, {true}});
    return gradient;
}

// What graphs recorded with `gradient` depend on; empty if its operators are not defined.
inline std::string what_fits(const std::string& line, const Gradient& gradient) {
    std::ostringstream text;
    text << line;
    for (const std::string& name : {gradient.forward.name, gradient.backward.name}) {
        const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
        if (!op.has_value()) return "";
        text << ' ' << op->schema();
    }
    return text.str();
}

using GradientsText = const char*();
using IsRegistered = bool();

// The lines of `opwright_gradients()` of every registered shared object in this process.
inline std::set<std::string> gradient_lines_in_process() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
            return 0;
        },
        &names);
    std::set<std::string> lines;
    for (const std::string& name : names) {
        void* object = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (object == nullptr) continue;
        auto* is_registered = reinterpret_cast<IsRegistered*>(dlsym(object, "opwright_is_registered"));
        auto* text = reinterpret_cast<GradientsText*>(dlsym(object, "opwright_gradients"));
        if (text != nullptr && (is_registered == nullptr || is_registered()))
            for (std::string& line : split(text(), '\n')) lines.insert(std::move(line));
        dlclose(object);
    }
    return lines;
}

}  // namespace opwright::autograd
