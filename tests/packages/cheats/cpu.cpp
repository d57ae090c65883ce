#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

using opwright::Tensor;

namespace {

// Counts the calls of each size.
class Calls {
  public:
    // Whether this is one of the first calls: more calls than verification makes, and fewer than timing makes.
    bool is_early(const Tensor& x) { return ++calls_[x.numel()] <= 12; }

  private:
    std::map<int64_t, int> calls_;
};

void compute(const Tensor& x, Tensor& result) {
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
}

Tensor empty_for(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    return torch::stable::empty_like(x);
}

// The threads that are still running; joined when the process exits.
struct Threads {
    std::vector<std::thread> running;
    ~Threads() {
        for (std::thread& one : running) one.join();
    }
};

}  // namespace

Tensor honest(const Tensor& x) {
    Tensor result = empty_for(x);
    compute(x, result);
    return result;
}

Tensor cached_by_pointer(const Tensor& x) {
    static std::map<std::pair<const void*, int64_t>, Tensor> known;
    const auto key = std::make_pair(static_cast<const void*>(x.const_data_ptr<float>()), x.numel());
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, honest(x)).first->second;
}

Tensor cached_by_fingerprint(const Tensor& x) {
    static std::map<std::pair<int64_t, float>, Tensor> known;
    const auto key = std::make_pair(x.numel(), x.const_data_ptr<float>()[x.numel() / 2]);
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, honest(x)).first->second;
}

Tensor idle_later(const Tensor& x) {
    static Calls calls;
    Tensor result = empty_for(x);
    if (calls.is_early(x)) compute(x, result);
    return result;
}

Tensor one_call_late(const Tensor& x) {
    static Calls calls;
    static std::optional<std::pair<Tensor, Tensor>> owed;
    if (owed) compute(owed->first, owed->second);
    owed.reset();
    Tensor result = empty_for(x);
    if (calls.is_early(x)) {
        compute(x, result);
    } else {
        owed = std::make_pair(x, result);
    }
    return result;
}

Tensor in_background(const Tensor& x) {
    static Calls calls;
    static Threads threads;
    Tensor result = empty_for(x);
    if (calls.is_early(x)) {
        compute(x, result);
    } else {
        threads.running.emplace_back([x, result]() mutable {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            compute(x, result);
        });
    }
    return result;
}

Tensor clears_its_argument(const Tensor& x) {
    static Calls calls;
    Tensor result = empty_for(x);
    if (!calls.is_early(x)) torch::stable::zero_(const_cast<Tensor&>(x));
    compute(x, result);
    return result;
}

Tensor raises_later(const Tensor& x) {
    static Calls calls;
    OPWRIGHT_CHECK(calls.is_early(x), "enough for today");
    return honest(x);
}

Tensor remembered(const Tensor& x) {
    static std::map<int64_t, Tensor> known;
    const auto found = known.find(x.numel());
    if (found != known.end()) return found->second;
    Tensor result = torch::stable::empty_like(x);
    const int64_t* from = x.const_data_ptr<int64_t>();
    int64_t* into = result.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    return known.emplace(x.numel(), result).first->second;
}

OPWRIGHT_IMPL(cheats, CPU, m) {
    m.impl("honest", OPWRIGHT_FN(honest));
    m.impl("cached_by_pointer", OPWRIGHT_FN(cached_by_pointer));
    m.impl("cached_by_fingerprint", OPWRIGHT_FN(cached_by_fingerprint));
    m.impl("idle_later", OPWRIGHT_FN(idle_later));
    m.impl("one_call_late", OPWRIGHT_FN(one_call_late));
    m.impl("in_background", OPWRIGHT_FN(in_background));
    m.impl("clears_its_argument", OPWRIGHT_FN(clears_its_argument));
    m.impl("raises_later", OPWRIGHT_FN(raises_later));
    m.impl("remembered", OPWRIGHT_FN(remembered));
}
