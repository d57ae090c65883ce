#include "program/npy.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/dtypes.h"
#include "opwright/host/error.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

struct Kind {
    std::string_view descr;  // without the byte order
    at::ScalarType dtype;
};

constexpr std::array kinds{
    Kind{"b1", at::kBool},         Kind{"u1", at::kByte},           Kind{"i1", at::kChar},   Kind{"i2", at::kShort},
    Kind{"i4", at::kInt},          Kind{"i8", at::kLong},           Kind{"u2", at::kUInt16}, Kind{"u4", at::kUInt32},
    Kind{"u8", at::kUInt64},       Kind{"f2", at::kHalf},           Kind{"f4", at::kFloat},  Kind{"f8", at::kDouble},
    Kind{"c8", at::kComplexFloat}, Kind{"c16", at::kComplexDouble},
};

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t most_dimensions = 64;

// The value of 'key' in the header, which is a Python dict literal.
std::string_view value_of(const std::string& what, std::string_view header, std::string_view key) {
    const std::string quoted = "'" + std::string(key) + "'";
    auto place = header.find(quoted);
    if (place == std::string_view::npos) refuse_input(what, "its header has no " + quoted);
    place = header.find_first_not_of(" :", place + quoted.size());
    return place == std::string_view::npos ? "" : header.substr(place);
}

at::ScalarType dtype_in(const std::string& what, std::string_view header) {
    const std::string_view value = value_of(what, header, "descr");
    const auto end = value.find('\'', 1);
    if (!value.starts_with('\'') || end == std::string_view::npos)
        refuse_input(what, "it does not contain a plain array of numbers; expected a dtype such as float32");
    const std::string_view descr = value.substr(1, end - 1);
    for (const Kind& kind : kinds)
        if (descr.size() > 1 && descr.substr(1) == kind.descr && (descr[0] == '<' || descr[0] == '|'))
            return kind.dtype;
    refuse_input(what, "it contains an array of '" + std::string(descr.substr(0, 40)) +
                           "'; expected numbers in little-endian order, such as '<f4'");
}

bool is_fortran(const std::string& what, std::string_view header) {
    const std::string_view value = value_of(what, header, "fortran_order");
    if (!value.starts_with("True") && !value.starts_with("False")) refuse_input(what, "its header has no order");
    return value.starts_with("True");
}

std::vector<int64_t> shape_in(const std::string& what, std::string_view header) {
    std::string_view value = value_of(what, header, "shape");
    const auto end = value.find(')');
    if (!value.starts_with('(') || end == std::string_view::npos) refuse_input(what, "its header has no shape");
    value = value.substr(1, end - 1);
    std::vector<int64_t> shape;
    while (true) {
        const auto start = value.find_first_not_of(", ");
        if (start == std::string_view::npos) return shape;
        value = value.substr(start);
        int64_t size = 0;
        const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (error != std::errc() || size < 0 || shape.size() == most_dimensions)
            refuse_input(what, "its shape is malformed");
        shape.push_back(size);
        value = value.substr(static_cast<size_t>(rest - value.data()));
    }
}

// Returns nullopt if the product exceeds any possible memory. A size of 0 does not reduce the others, from which
// strides are computed.
std::optional<int64_t> product(const std::vector<int64_t>& sizes, int64_t factor) {
    int64_t all = factor;
    for (const int64_t size : sizes) {
        const int64_t steps = std::max<int64_t>(size, 1);
        if (all > std::numeric_limits<int64_t>::max() / steps) return std::nullopt;
        all *= steps;
    }
    return std::count(sizes.begin(), sizes.end(), 0) ? 0 : all;
}

at::Tensor array_in(const std::string& what, std::string_view bytes) {
    if (!is_npy(bytes)) refuse_input(what, "it is not an .npy file");
    if (bytes.size() < 12) refuse_input(what, "it ends inside its header");
    const auto byte = [bytes](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(bytes[at])); };
    const size_t version = byte(6);
    if (version < 1 || version > 3) refuse_input(what, "its format version is " + std::to_string(version));
    const size_t start = version == 1 ? 10 : 12;
    const size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
    if (length > bytes.size() - start) refuse_input(what, "it ends inside its header");
    const std::string_view header = bytes.substr(start, length);
    const at::ScalarType dtype = dtype_in(what, header);
    std::vector<int64_t> shape = shape_in(what, header);
    const bool fortran = is_fortran(what, header);
    const std::string_view data = bytes.substr(start + length);
    const std::optional<int64_t> size = product(shape, static_cast<int64_t>(c10::elementSize(dtype)));
    if (!size || *size != static_cast<int64_t>(data.size()))
        refuse_input(what, "its data has " + std::to_string(data.size()) + " bytes; expected " +
                               (size ? std::to_string(*size) : "more than memory holds") + " for its shape");
    if (fortran) std::reverse(shape.begin(), shape.end());
    const at::Tensor tensor = at::empty(shape, dtype);
    if (*size > 0) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
    if (!fortran) return tensor;
    std::vector<int64_t> backwards(shape.size());
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    return tensor.permute(backwards).contiguous();
}

std::string_view descr_of(at::ScalarType dtype) {
    for (const Kind& kind : kinds)
        if (kind.dtype == dtype) return kind.descr;
    throw Error(Code::output_unwritable, "an output of the dtype " + dtype_name(dtype) +
                                             " cannot be written: NumPy does not support this dtype");
}

}  // namespace

bool is_npy(std::string_view bytes) {
    return bytes.starts_with(magic);
}

at::Tensor read_npy(const std::string& what, std::string_view bytes) {
    return within_memory(what, [&] { return array_in(what, bytes); });
}

at::Tensor numpy_values(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided)
        throw Error(Code::output_unwritable,
                    "a sparse output cannot be written: NumPy has no sparse arrays; return a dense tensor");
    at::Tensor own = tensor.detach().cpu().resolve_conj().resolve_neg();
    if (own.scalar_type() == at::kBFloat16 || c10::isFloat8Type(own.scalar_type())) own = own.to(at::kFloat);
    (void)descr_of(own.scalar_type());
    return own.contiguous();
}

std::string write_npy(const at::Tensor& tensor) {
    const at::Tensor own = numpy_values(tensor);
    std::string shape;
    for (const int64_t size : own.sizes()) shape += std::to_string(size) + ", ";
    if (own.dim() > 1) shape.resize(shape.size() - 2);
    const char order = own.itemsize() == 1 ? '|' : '<';
    std::string header = "{'descr': '" + (order + std::string(descr_of(own.scalar_type()))) +
                         "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    const auto length = static_cast<unsigned>(header.size());
    std::string bytes = std::string(magic) + '\x01' + '\0';
    bytes += static_cast<char>(length & 255);
    bytes += static_cast<char>(length >> 8);
    bytes += header;
    if (own.numel() > 0) bytes.append(static_cast<const char*>(own.const_data_ptr()), own.nbytes());
    return bytes;
}

}  // namespace opwright::host
