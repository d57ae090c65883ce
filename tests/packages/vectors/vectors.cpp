// The operations of a vector of opwright/simd.h, each with the requested instruction set.
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/op.h>
#include <opwright/parallel/dtypes.h>
#include <opwright/simd.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace {

namespace simd = opwright::simd;
using opwright::ScalarType;
using opwright::Tensor;

simd::InstructionSet named(const std::string& set) {
    return set == "avx512" ? simd::InstructionSet::avx512
           : set == "avx2" ? simd::InstructionSet::avx2
                           : simd::InstructionSet::baseline;
}

std::string widest() {
    return simd::instruction_set() == simd::InstructionSet::avx512 ? "avx512"
           : simd::instruction_set() == simd::InstructionSet::avx2 ? "avx2"
                                                                   : "baseline";
}

// into[i] = formula(x[i], y[i], z[i])
template <class Number, class Formula>
struct Elementwise {
    const Number *x, *y, *z;
    Number* into;
    Formula formula;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = simd::Vector<Number, bytes>;
        for (int64_t i = begin; i < end; i += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - i);
            V result = formula(V::load(x + i, count), V::load(y + i, count), V::load(z + i, count));
            result.store(into + i, count);
        }
    }
};

template <class Number, class Formula>
bool apply_if(bool is_asked, const Tensor& x, const Tensor& y, const Tensor& z, Tensor& into, const std::string& set,
              const Formula& formula) {
    if (is_asked) {
        simd::run(Elementwise<Number, Formula>{x.const_data_ptr<Number>(), y.const_data_ptr<Number>(),
                                               z.const_data_ptr<Number>(), into.mutable_data_ptr<Number>(), formula},
                  0, x.numel(), named(set));
    }
    return is_asked;
}

template <class Number>
void apply_as(const std::string& function, const Tensor& x, const Tensor& y, const Tensor& z, Tensor& into,
              const std::string& set) {
    bool found = false;
    const auto with = [&](const char* name, const auto& formula) {
        found |= apply_if<Number>(function == name, x, y, z, into, set, formula);
    };
    with("exp", [](auto a, auto, auto) OPWRIGHT_INLINE { return exp(a); });
    with("expm1", [](auto a, auto, auto) OPWRIGHT_INLINE { return expm1(a); });
    with("log", [](auto a, auto, auto) OPWRIGHT_INLINE { return log(a); });
    with("sigmoid", [](auto a, auto, auto) OPWRIGHT_INLINE { return sigmoid(a); });
    with("tanh", [](auto a, auto, auto) OPWRIGHT_INLINE { return tanh(a); });
    with("erf", [](auto a, auto, auto) OPWRIGHT_INLINE { return erf(a); });
    with("sqrt", [](auto a, auto, auto) OPWRIGHT_INLINE { return sqrt(a); });
    with("round", [](auto a, auto, auto) OPWRIGHT_INLINE { return round(a); });
    with("floor", [](auto a, auto, auto) OPWRIGHT_INLINE { return floor(a); });
    with("ceil", [](auto a, auto, auto) OPWRIGHT_INLINE { return ceil(a); });
    with("trunc", [](auto a, auto, auto) OPWRIGHT_INLINE { return trunc(a); });
    with("abs", [](auto a, auto, auto) OPWRIGHT_INLINE { return abs(a); });
    with("negative", [](auto a, auto, auto) OPWRIGHT_INLINE { return -a; });
    with("whole", [](auto a, auto, auto) OPWRIGHT_INLINE { return a.of_integers(a.integers()); });
    with("add", [](auto a, auto b, auto) OPWRIGHT_INLINE { return a += b; });
    with("subtract", [](auto a, auto b, auto) OPWRIGHT_INLINE { return a -= b; });
    with("multiply", [](auto a, auto b, auto) OPWRIGHT_INLINE { return a *= b; });
    with("divide", [](auto a, auto b, auto) OPWRIGHT_INLINE { return a /= b; });
    with("min", [](auto a, auto b, auto) OPWRIGHT_INLINE { return min(a, b); });
    with("max", [](auto a, auto b, auto) OPWRIGHT_INLINE { return max(a, b); });
    with("lesser", [](auto a, auto b, auto) OPWRIGHT_INLINE { return lesser(a, b); });
    with("greater", [](auto a, auto b, auto) OPWRIGHT_INLINE { return greater(a, b); });
    with("copysign", [](auto a, auto b, auto) OPWRIGHT_INLINE { return copysign(a, b); });
    with("equal", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a == b, 1, a.of_bits(0)); });
    with("not_equal", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a != b, 1, a.of_bits(0)); });
    with("less", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a < b, 1, a.of_bits(0)); });
    with("less_or_equal", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a <= b, 1, a.of_bits(0)); });
    with("more", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a > b, 1, a.of_bits(0)); });
    with("more_or_equal", [](auto a, auto b, auto) OPWRIGHT_INLINE { return select(a >= b, 1, a.of_bits(0)); });
    with("even_lanes", [](auto a, auto b, auto) OPWRIGHT_INLINE { return even_lanes(a, b); });
    with("interleave_lower", [](auto a, auto b, auto) OPWRIGHT_INLINE { return interleave_lower(a, b); });
    with("interleave_upper", [](auto a, auto b, auto) OPWRIGHT_INLINE { return interleave_upper(a, b); });
    with("odd_lanes", [](auto a, auto b, auto) OPWRIGHT_INLINE { return odd_lanes(a, b); });
    with("fma", [](auto a, auto b, auto c) OPWRIGHT_INLINE { return fma(a, b, c); });
    OPWRIGHT_CHECK(found, "unknown function ", function);
}

Tensor apply(const std::string& function, const Tensor& x, const Tensor& y, const Tensor& z, const std::string& set) {
    Tensor into = opwright::empty_like(x);
    if (x.scalar_type() == ScalarType::Float) {
        apply_as<float>(function, x, y, z, into, set);
    } else {
        apply_as<double>(function, x, y, z, into, set);
    }
    return into;
}

// ---- Memory ----

// Copies `count` elements from `from` to `into`, one vector at a time, through their elements.
template <class From, class Into>
struct Copy {
    const From* from;
    Into* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = simd::Vector<std::conditional_t<sizeof(From) == 8, double, float>, bytes>;
        for (int64_t i = begin; i < end; i += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - i);
            V::load(from + i, count).store(into + i, count);
        }
    }
};

template <class Act>
void with_type_of(const Tensor& x, const Act& act) {
    switch (x.scalar_type()) {
        case ScalarType::Half:
            return act(opwright::Half());
        case ScalarType::BFloat16:
            return act(opwright::BFloat16());
        default:
            return act(float());
    }
}

// Copies the elements of `from` between `begin` and `end` to `into`.
void copy(const Tensor& from, Tensor& into, int64_t begin, int64_t end, const std::string& set) {
    if (from.scalar_type() == ScalarType::Double) {
        simd::run(Copy<double, double>{from.const_data_ptr<double>(), into.mutable_data_ptr<double>()}, begin, end,
                  named(set));
        return;
    }
    with_type_of(from, [&](auto source) {
        with_type_of(into, [&](auto target) {
            using From = decltype(source);
            using Into = decltype(target);
            simd::run(Copy<From, Into>{static_cast<const From*>(from.const_data_ptr()),
                                       static_cast<Into*>(into.mutable_data_ptr())},
                      begin, end, named(set));
        });
    });
}

template <class Number>
struct Gather {
    const Number* from;
    const simd::detail::BitsOf<Number>* offsets;
    Number* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = simd::Vector<Number, bytes>;
        for (int64_t i = begin; i < end; i += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - i);
            V::gather(from, V::Mask::load(offsets + i, count)).store(into + i, count);
        }
    }
};

Tensor gather(const Tensor& from, const Tensor& offsets, const std::string& set) {
    Tensor into = opwright::new_empty(from, {offsets.numel()});
    if (from.scalar_type() == ScalarType::Float) {
        simd::run(Gather<float>{from.const_data_ptr<float>(), offsets.const_data_ptr<int32_t>(),
                                into.mutable_data_ptr<float>()},
                  0, offsets.numel(), named(set));
    } else {
        simd::run(Gather<double>{from.const_data_ptr<double>(), offsets.const_data_ptr<int64_t>(),
                                 into.mutable_data_ptr<double>()},
                  0, offsets.numel(), named(set));
    }
    return into;
}

// ---- Integers ----

template <class Number>
struct IntegerArithmetic {
    using Element = simd::detail::BitsOf<Number>;
    const Element *x, *y;
    Element* into;
    char operation;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using I = simd::Integers<Number, bytes>;
        for (int64_t i = begin; i < end; i += I::lanes) {
            const int64_t count = std::min<int64_t>(I::lanes, end - i);
            const I a = I::load(x + i, count);
            const I b = I::load(y + i, count);
            const I result = operation == '+'   ? a + b
                             : operation == '-' ? a - b
                             : operation == '*' ? a * b
                             : operation == '&' ? (a & b)
                             : operation == '|' ? (a | b)
                             : operation == '^' ? (a ^ b)
                             : operation == '~' ? ~a
                             : operation == 'l' ? a << 3
                             : operation == 'r' ? a >> 3
                             : operation == 'm' ? min(a, b)
                             : operation == 'M' ? max(a, b)
                             : operation == '=' ? select(a == b, I(1), I(0))
                             : operation == '!' ? select(a != b, I(1), I(0))
                             : operation == '<' ? select(a < b, I(1), I(0))
                             : operation == '>' ? select(a > b, I(1), I(0))
                             : operation == '[' ? select(a <= b, I(1), I(0))
                             : operation == ']' ? select(a >= b, I(1), I(0))
                             : operation == '?' ? I(any(a == b) ? 1 : 0)
                                                : I::count_up();
            result.store(into + i, count);
        }
    }
};

Tensor integers(const std::string& operation, const Tensor& x, const Tensor& y, const std::string& set) {
    Tensor into = opwright::empty_like(x);
    if (x.scalar_type() == ScalarType::Int) {
        simd::run(IntegerArithmetic<float>{x.const_data_ptr<int32_t>(), y.const_data_ptr<int32_t>(),
                                           into.mutable_data_ptr<int32_t>(), operation[0]},
                  0, x.numel(), named(set));
    } else {
        simd::run(IntegerArithmetic<double>{x.const_data_ptr<int64_t>(), y.const_data_ptr<int64_t>(),
                                            into.mutable_data_ptr<int64_t>(), operation[0]},
                  0, x.numel(), named(set));
    }
    return into;
}

// ---- Over the lanes ----

template <class Number>
struct OverLanes {
    const Number* x;
    Number* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t, int64_t end) const {
        using V = simd::Vector<Number, bytes>;
        const V a = V::load(x, std::min<int64_t>(V::lanes, end));
        into[0] = sum_of_lanes(a);
        into[1] = min_of_lanes(a);
        into[2] = max_of_lanes(a);
        into[3] = V::lanes;
    }
};

Tensor over_lanes(const Tensor& x, const std::string& set) {
    Tensor into = opwright::new_empty(x, {4});
    if (x.scalar_type() == ScalarType::Float) {
        simd::run(OverLanes<float>{x.const_data_ptr<float>(), into.mutable_data_ptr<float>()}, 0, x.numel(),
                  named(set));
    } else {
        simd::run(OverLanes<double>{x.const_data_ptr<double>(), into.mutable_data_ptr<double>()}, 0, x.numel(),
                  named(set));
    }
    return into;
}

}  // namespace

OPWRIGHT_LIBRARY(vectors, m) {
    m.def("widest() -> str", OPWRIGHT_FN(widest));
    m.def("apply(str function, Tensor x, Tensor y, Tensor z, str set) -> Tensor", OPWRIGHT_FN(apply));
    m.def("copy(Tensor source, Tensor(a!) into, int begin, int end, str set) -> ()", OPWRIGHT_FN(copy));
    m.def("gather(Tensor source, Tensor offsets, str set) -> Tensor", OPWRIGHT_FN(gather));
    m.def("integers(str operation, Tensor x, Tensor y, str set) -> Tensor", OPWRIGHT_FN(integers));
    m.def("over_lanes(Tensor x, str set) -> Tensor", OPWRIGHT_FN(over_lanes));
}
