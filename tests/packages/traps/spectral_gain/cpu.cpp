#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

struct Complex {
    double re;
    double im;
};

Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Complex conj(Complex a) {
    return {a.re, -a.im};
}

// The elements of a contiguous tensor, complex64 or float32.
struct Numbers {
    const float* data;
    bool is_complex;

    explicit Numbers(const Tensor& from)
        : data(static_cast<const float*>(from.const_data_ptr())),
          is_complex(from.scalar_type() == ScalarType::ComplexFloat) {}

    Complex operator[](int64_t i) const {
        return is_complex ? Complex{data[2 * i], data[2 * i + 1]} : Complex{data[i], 0};
    }
};

void put(float* into, int64_t i, Complex value) {
    into[2 * i] = static_cast<float>(value.re);
    into[2 * i + 1] = static_cast<float>(value.im);
}

void check_arguments(const Tensor& spectrum, const Tensor& gain) {
    check::dtype(spectrum, "spectrum", ScalarType::ComplexFloat);
    check::dtype(gain, "gain", {ScalarType::Float, ScalarType::ComplexFloat});
    OPWRIGHT_CHECK(spectrum.dim() >= 1, "spectrum must have a dimension");
    check::sizes(gain, "gain", {spectrum.size(spectrum.dim() - 1)});
}

Tensor spectral_gain(const Tensor& spectrum, const Tensor& gain) {
    check_arguments(spectrum, gain);
    const Tensor source = torch::stable::contiguous(spectrum);
    const Tensor gains = torch::stable::contiguous(gain);
    const Numbers from(source), by(gains);
    Tensor result = torch::stable::new_empty(spectrum, spectrum.sizes());
    auto* into = static_cast<float*>(result.mutable_data_ptr());
    const int64_t bins = gain.numel(), count = spectrum.numel();
    for (int64_t i = 0; i < count; ++i) put(into, i, from[i] * by[i % bins]);
    return result;
}

std::tuple<Tensor, Tensor> spectral_gain_backward(const Tensor& grad, const Tensor& spectrum, const Tensor& gain,
                                                  const std::vector<bool>& wanted) {
    check_arguments(spectrum, gain);
    check::dtype(grad, "grad", ScalarType::ComplexFloat);
    check::same_sizes(grad, "grad", spectrum, "spectrum");
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const Tensor source = torch::stable::contiguous(spectrum);
    const Tensor gains = torch::stable::contiguous(gain);
    const Tensor incoming = torch::stable::contiguous(grad);
    const Numbers from(source), by(gains), given(incoming);
    const int64_t bins = gain.numel(), count = spectrum.numel();
    Tensor to_spectrum, to_gain;
    if (wanted[0]) {
        to_spectrum = torch::stable::new_empty(spectrum, spectrum.sizes());
        auto* into = static_cast<float*>(to_spectrum.mutable_data_ptr());
#ifdef FAULTY
        for (int64_t i = 0; i < count; ++i) put(into, i, given[i] * by[i % bins]);
#else
        for (int64_t i = 0; i < count; ++i) put(into, i, given[i] * conj(by[i % bins]));
#endif
    }
    if (wanted[1]) {
        std::vector<Complex> sums(bins, Complex{0, 0});
        for (int64_t i = 0; i < count; ++i) {
            const Complex term = given[i] * conj(from[i]);
            sums[i % bins].re += term.re;
            sums[i % bins].im += term.im;
        }
        to_gain = torch::stable::new_empty(gain, gain.sizes());
        auto* into = static_cast<float*>(to_gain.mutable_data_ptr());
        for (int64_t k = 0; k < bins; ++k) {
            if (by.is_complex) {
                put(into, k, sums[k]);
            } else {
                into[k] = static_cast<float>(sums[k].re);
            }
        }
    }
    return {to_spectrum, to_gain};
}

}  // namespace

OPWRIGHT_IMPL(trap_spectral_gain, CPU, m) {
    m.impl("spectral_gain", OPWRIGHT_FN(spectral_gain));
    m.impl("spectral_gain_backward", OPWRIGHT_FN(spectral_gain_backward));
}
