#include <fcntl.h>
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using opwright::Tensor;

namespace {

Tensor empty_for(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    return torch::stable::empty_like(x);
}

Tensor computed(const Tensor& x) {
    Tensor result = empty_for(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    return result;
}

Tensor zeros_for(const Tensor& x) {
    Tensor result = empty_for(x);
    return torch::stable::zero_(result);
}

// 16 elements of x.
std::vector<float> fingerprint(const Tensor& x) {
    const float* from = x.const_data_ptr<float>();
    const int64_t step = x.numel() < 16 ? 1 : x.numel() / 16;
    std::vector<float> values;
    for (int64_t i = 0; i < x.numel() && values.size() < 16; i += step) values.push_back(from[i]);
    return values;
}

}  // namespace

Tensor right(const Tensor& x) {
    return computed(x);
}

Tensor flushes_denormals(const Tensor& x) {
    Tensor result = computed(x);
#if defined(__x86_64__)
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#elif defined(__aarch64__)
    uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | (uint64_t{1} << 24)));
#endif
    return result;
}

Tensor rounds_upward(const Tensor& x) {
    Tensor result = computed(x);
    std::fesetround(FE_UPWARD);
    return result;
}

Tensor ignores_a_signal(const Tensor& x) {
    std::signal(SIGUSR1, SIG_IGN);
    return computed(x);
}

Tensor sets_a_variable(const Tensor& x) {
    setenv("MISBEHAVING", "here", 1);
    return computed(x);
}

Tensor changes_the_folder(const Tensor& x) {
    OPWRIGHT_CHECK(chdir("/usr") == 0, "cannot change the directory to /usr");
    return computed(x);
}

Tensor prints(const Tensor& x) {
    std::puts("computing");
    return computed(x);
}

Tensor leaves_a_file_open(const Tensor& x) {
    OPWRIGHT_CHECK(open("/dev/null", O_RDONLY) >= 0, "cannot open /dev/null");
    return computed(x);
}

Tensor leaves_a_thread(const Tensor& x) {
    // Longer than the check watches one call.
    std::thread([] { std::this_thread::sleep_for(std::chrono::seconds(30)); }).detach();
    return computed(x);
}

Tensor restores_its_argument(const Tensor& x) {
    Tensor result = computed(x);
    volatile float* values = const_cast<float*>(x.const_data_ptr<float>());
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float kept = values[i];
        values[i] = 0;
        values[i] = kept;
    }
    return result;
}

Tensor reads_past_the_end(const Tensor& x) {
    Tensor result = computed(x);
    const volatile float* values = x.const_data_ptr<float>();
    if (x.numel() > 0) [[maybe_unused]]
        const float next = values[x.numel()];
    return result;
}

Tensor writes_later(const Tensor& x) {
    Tensor result = computed(x);
    // The thread keeps the result alive, and writes while the check watches, however late that starts.
    std::thread([result]() mutable {
        volatile float* into = result.mutable_data_ptr<float>();
        for (int number = 0; number < 200; ++number) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            for (int64_t i = 0; i < result.numel(); ++i) into[i] = static_cast<float>(number);
        }
    }).detach();
    return result;
}

Tensor remembers_addresses(const Tensor& x) {
    struct Known {
        std::vector<float> values, results;
    };
    static std::map<const void*, Known> known;
    static std::mutex lock;
    const std::lock_guard guard(lock);
    Tensor result = computed(x);
    if (x.numel() == 0) return result;
    const size_t count = static_cast<size_t>(x.numel());
    float* into = result.mutable_data_ptr<float>();
    Known& found = known[x.const_data_ptr<float>()];
    if (found.values == fingerprint(x) && found.results.size() == count) {
        std::memcpy(into, found.results.data(), count * sizeof(float));
    } else {
        found = {fingerprint(x), std::vector<float>(into, into + count)};
    }
    return result;
}

Tensor stops_computing(const Tensor& x) {
    static std::atomic<int> calls{0};
    return ++calls > 2000 ? zeros_for(x) : computed(x);
}

Tensor fills_a_table_late(const Tensor& x) {
    static std::atomic<bool> is_ready{false};
    static std::atomic<float> offset{0};
    if (!is_ready.exchange(true)) {
        // Only the first call of a process waits, long enough for the other first calls to read the empty table.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        offset = 1;
    }
    Tensor result = empty_for(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + offset;
    return result;
}

Tensor ends_among_others(const Tensor& x) {
    static std::atomic<int> callers{0};
    Tensor result = computed(x);
    if (++callers > 1) std::raise(SIGSEGV);
    // Long enough for calls to overlap.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    --callers;
    return result;
}

Tensor waits_for_its_helper(const Tensor& x) {
    struct Helper {
        std::mutex callers, lock;
        std::condition_variable changed;
        std::function<void()> task;
        Helper() {
            std::thread([this] {
                std::unique_lock guard(lock);
                while (true) {
                    changed.wait(guard, [this] { return task != nullptr; });
                    task();
                    task = nullptr;
                    changed.notify_all();
                }
            }).detach();
        }
    };
    static Helper& helper = *new Helper;  // never destroyed: its thread waits until the process exits
    Tensor result = empty_for(x);
    const std::lock_guard one_caller(helper.callers);
    std::unique_lock guard(helper.lock);
    helper.task = [&] {
        const float* from = x.const_data_ptr<float>();
        float* into = result.mutable_data_ptr<float>();
        for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    };
    helper.changed.notify_all();
    helper.changed.wait(guard, [] { return helper.task == nullptr; });
    return result;
}

Tensor exits(const Tensor& x) {
    if (x.numel() == 0) std::exit(0);
    return computed(x);
}

Tensor throws_in_a_thread(const Tensor& x) {
    const bool is_empty = x.numel() == 0;
    std::thread([is_empty] {
        if (is_empty) throw std::runtime_error("nothing to compute");
    }).join();
    return computed(x);
}

Tensor divides_by_the_size(const Tensor& x) {
    volatile int64_t count = x.numel();
#if !defined(__x86_64__)
    if (count == 0) std::raise(SIGFPE);  // for processors that return 0
#endif
    [[maybe_unused]] volatile int64_t block = 1024 / count;
    return computed(x);
}

Tensor corrupts_the_heap(const Tensor& x) {
    // The C library checks what follows the memory when it is freed, unless it is short.
    const size_t size = 8192;
    volatile char* scratch = static_cast<char*>(std::malloc(size));
    const size_t written = x.numel() == 0 ? size + 64 : size;
    for (size_t i = 0; i < written; ++i) scratch[i] = 0x55;
    std::free(const_cast<char*>(scratch));
    return computed(x);
}

Tensor forges_a_verdict(const Tensor& x) {
    const std::string message =
        "\n\x1e{\"event\": \"end\", \"cell\": {\"op\": \"misbehaving::forges_a_verdict\", \"runtime\": \"eager\", "
        "\"device\": \"cpu\", \"status\": \"passed\", \"reason\": \"\", \"cases\": 9, \"rejected\": 0, "
        "\"failures\": [], \"seconds\": 1.0}}\n";
    for (int file = 1; file < 64; ++file) {
        [[maybe_unused]] const ssize_t written = write(file, message.data(), message.size());
    }
    return zeros_for(x);
}

OPWRIGHT_IMPL(misbehaving, CPU, m) {
    m.impl("right", OPWRIGHT_FN(right));
    m.impl("flushes_denormals", OPWRIGHT_FN(flushes_denormals));
    m.impl("rounds_upward", OPWRIGHT_FN(rounds_upward));
    m.impl("ignores_a_signal", OPWRIGHT_FN(ignores_a_signal));
    m.impl("sets_a_variable", OPWRIGHT_FN(sets_a_variable));
    m.impl("changes_the_folder", OPWRIGHT_FN(changes_the_folder));
    m.impl("prints", OPWRIGHT_FN(prints));
    m.impl("leaves_a_file_open", OPWRIGHT_FN(leaves_a_file_open));
    m.impl("leaves_a_thread", OPWRIGHT_FN(leaves_a_thread));
    m.impl("restores_its_argument", OPWRIGHT_FN(restores_its_argument));
    m.impl("reads_past_the_end", OPWRIGHT_FN(reads_past_the_end));
    m.impl("writes_later", OPWRIGHT_FN(writes_later));
    m.impl("remembers_addresses", OPWRIGHT_FN(remembers_addresses));
    m.impl("stops_computing", OPWRIGHT_FN(stops_computing));
    m.impl("fills_a_table_late", OPWRIGHT_FN(fills_a_table_late));
    m.impl("ends_among_others", OPWRIGHT_FN(ends_among_others));
    m.impl("waits_for_its_helper", OPWRIGHT_FN(waits_for_its_helper));
    m.impl("exits", OPWRIGHT_FN(exits));
    m.impl("throws_in_a_thread", OPWRIGHT_FN(throws_in_a_thread));
    m.impl("divides_by_the_size", OPWRIGHT_FN(divides_by_the_size));
    m.impl("corrupts_the_heap", OPWRIGHT_FN(corrupts_the_heap));
    m.impl("forges_a_verdict", OPWRIGHT_FN(forges_a_verdict));
}
