// Times the functions of opwright/simd.h, SLEEF, xsimd and Highway in turn, on one thread, and prints nanoseconds per
// element as JSON. speed.py builds it, once with AVX2 and once with AVX-512 instructions.
#include <hwy/highway.h>
// Must come after highway.h.
#include <hwy/contrib/math/math-inl.h>
#include <opwright/simd.h>
#include <sleef.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <vector>
#include <xsimd/xsimd.hpp>

namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd = opwright::simd;

constexpr int elements = 4096;  // of each type; they fit into the L1 cache
constexpr int rounds = 301;
constexpr int calls = 20;

#if defined(__AVX512F__)
constexpr auto instruction_set = simd::InstructionSet::avx512;
#define SLEEF_NAME(function, accuracy, lanes) Sleef_##function##lanes##_##accuracy##avx512f
#define FLOATS 16
#define DOUBLES 8
#else
constexpr auto instruction_set = simd::InstructionSet::avx2;
#define SLEEF_NAME(function, accuracy, lanes) Sleef_##function##lanes##_##accuracy##avx2
#define FLOATS 8
#define DOUBLES 4
#endif
#define SLEEF_AFTER_EXPANSION(function, accuracy, lanes) SLEEF_NAME(function, accuracy, lanes)
#define SLEEF_FLOAT(function) SLEEF_AFTER_EXPANSION(function##f, u10, FLOATS)
#define SLEEF_DOUBLE(function) SLEEF_AFTER_EXPANSION(function##d, u10, DOUBLES)

template <class Number, class Formula>
struct Own {
    const Number* from;
    Number* into;
    Formula formula;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = simd::Vector<Number, bytes>;
        for (std::int64_t i = begin; i < end; i += V::lanes) {
            const std::int64_t count = std::min<std::int64_t>(V::lanes, end - i);
            V(formula(V::load(from + i, count))).store(into + i, count);
        }
    }
};

template <class Number, class Formula>
void own(const Number* from, Number* into, const Formula& formula) {
    simd::run(Own<Number, Formula>{from, into, formula}, 0, elements, instruction_set);
}

template <class Number, class Formula>
void of_xsimd(const Number* from, Number* into, const Formula& formula) {
    using Batch = xsimd::batch<Number>;
    for (int i = 0; i < elements; i += static_cast<int>(Batch::size)) {
        formula(Batch::load_unaligned(from + i)).store_unaligned(into + i);
    }
}

template <class Number, class Formula>
void of_highway(const Number* from, Number* into, const Formula& formula) {
    const hn::ScalableTag<Number> tag;
    for (int i = 0; i < elements; i += static_cast<int>(hn::Lanes(tag))) {
        hn::StoreU(formula(tag, hn::LoadU(tag, from + i)), tag, into + i);
    }
}

// SLEEF accepts the compiler's own vectors.
template <class Number, class Formula>
void of_sleef(const Number* from, Number* into, const Formula& formula) {
#if defined(__AVX512F__)
    using V = std::conditional_t<std::is_same_v<Number, float>, __m512, __m512d>;
#else
    using V = std::conditional_t<std::is_same_v<Number, float>, __m256, __m256d>;
#endif
    for (int i = 0; i < elements; i += static_cast<int>(sizeof(V) / sizeof(Number))) {
        V x;
        __builtin_memcpy(&x, from + i, sizeof(V));
        x = formula(x);
        __builtin_memcpy(into + i, &x, sizeof(V));
    }
}

double processor_time() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Number>
using Contenders = std::map<std::string, std::function<void(const Number*, Number*)>>;

bool first_line = true;

template <class Number>
void compare(const std::string& function, const std::vector<Number>& from, double (*exact)(double),
             const Contenders<Number>& contenders) {
    std::vector<Number> into(elements);
    std::map<std::string, std::vector<double>> times;
    for (const auto& [name, contender] : contenders) {
        contender(from.data(), into.data());
        for (int i = 0; i < elements; ++i) {
            const double expected = exact(static_cast<double>(from[i]));
            const double off = std::abs(static_cast<double>(into[i]) - expected);
            if (!(off <= 200 * std::numeric_limits<Number>::epsilon() * std::abs(expected))) {
                std::fprintf(stderr, "%s of %s: f(%.17g) is not %.17g but %.17g, so the times are meaningless\n",
                             function.c_str(), name.c_str(), static_cast<double>(from[i]), expected,
                             static_cast<double>(into[i]));
                std::exit(1);
            }
        }
    }
    for (int round = 0; round < rounds; ++round) {
        for (const auto& [name, contender] : contenders) {
            const double started = processor_time();
            for (int call = 0; call < calls; ++call) contender(from.data(), into.data());
            times[name].push_back((processor_time() - started) / calls / elements);
        }
    }
    std::printf("%s\n  {\"type\": \"%s\", \"function\": \"%s\", \"nanoseconds\": {", first_line ? "" : ",",
                std::is_same_v<Number, float> ? "float" : "double", function.c_str());
    first_line = false;
    bool first = true;
    for (auto& [name, series] : times) {
        std::nth_element(series.begin(), series.begin() + rounds / 2, series.end());
        std::printf("%s\"%s\": %.4f", first ? "" : ", ", name.c_str(), series[rounds / 2]);
        first = false;
    }
    std::printf("}}");
}

#define OWN(expression) [](const auto* a, auto* b) { own(a, b, [](auto x) OPWRIGHT_INLINE { return expression; }); }
#define XSIMD(expression) [](const auto* a, auto* b) { of_xsimd(a, b, [](auto x) { return expression; }); }
#define HIGHWAY(expression) \
    [](const auto* a, auto* b) { of_highway(a, b, [](auto tag, auto x) HWY_ATTR { return expression; }); }
#define SLEEF(expression) [](const auto* a, auto* b) { of_sleef(a, b, [](auto x) { return expression; }); }

double exact_sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

template <class Number>
void compare_all() {
    std::mt19937 random(0);
    std::normal_distribution<Number> normal(0, 3);
    std::vector<Number> numbers(elements);
    for (Number& x : numbers) x = normal(random);
    std::vector<Number> positive = numbers;
    for (Number& x : positive) x = std::abs(x) + Number(1.5);
    constexpr bool is_float = std::is_same_v<Number, float>;
    const auto sleef = [](auto of_float, auto of_double) {
        if constexpr (is_float) {
            return of_float;
        } else {
            return of_double;
        }
    };
    compare<Number>("exp", numbers, std::exp,
                    {{"opwright", OWN(exp(x))},
                     {"xsimd", XSIMD(xsimd::exp(x))},
                     {"Highway", HIGHWAY(hn::Exp(tag, x))},
                     {"SLEEF", sleef(SLEEF(SLEEF_FLOAT(exp)(x)), SLEEF(SLEEF_DOUBLE(exp)(x)))}});
    compare<Number>("expm1", numbers, std::expm1,
                    {{"opwright", OWN(expm1(x))},
                     {"xsimd", XSIMD(xsimd::expm1(x))},
                     {"Highway", HIGHWAY(hn::Expm1(tag, x))},
                     {"SLEEF", sleef(SLEEF(SLEEF_FLOAT(expm1)(x)), SLEEF(SLEEF_DOUBLE(expm1)(x)))}});
    compare<Number>("log", positive, std::log,
                    {{"opwright", OWN(log(x))},
                     {"xsimd", XSIMD(xsimd::log(x))},
                     {"Highway", HIGHWAY(hn::Log(tag, x))},
                     {"SLEEF", sleef(SLEEF(SLEEF_FLOAT(log)(x)), SLEEF(SLEEF_DOUBLE(log)(x)))}});
    compare<Number>("tanh", numbers, std::tanh,
                    {{"opwright", OWN(tanh(x))},
                     {"xsimd", XSIMD(xsimd::tanh(x))},
                     {"Highway", HIGHWAY(hn::Tanh(tag, x))},
                     {"SLEEF", sleef(SLEEF(SLEEF_FLOAT(tanh)(x)), SLEEF(SLEEF_DOUBLE(tanh)(x)))}});
    compare<Number>("sigmoid", numbers, exact_sigmoid,
                    {{"opwright", OWN(sigmoid(x))},
                     {"xsimd", XSIMD(1 / (1 + xsimd::exp(-x)))},
                     {"Highway", HIGHWAY(hn::Div(hn::Set(tag, 1), hn::Add(hn::Set(tag, 1), hn::Exp(tag, hn::Neg(x)))))},
                     {"SLEEF", sleef(SLEEF(1 / (1 + SLEEF_FLOAT(exp)(-x))), SLEEF(1 / (1 + SLEEF_DOUBLE(exp)(-x))))}});
    compare<Number>("erf", numbers, std::erf,
                    {{"opwright", OWN(erf(x))},
                     {"xsimd", XSIMD(xsimd::erf(x))},
                     {"SLEEF", sleef(SLEEF(SLEEF_FLOAT(erf)(x)), SLEEF(SLEEF_DOUBLE(erf)(x)))}});
}

}  // namespace

int main() {
    std::printf("[");
    compare_all<float>();
    compare_all<double>();
    std::printf("\n]\n");
}
