#include "exchange.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "engine/archive.h"
#include "engine/atomic_file.h"
#include "engine/dtypes.h"
#include "engine/reason.h"
#include "opwright/host/error.h"

namespace opwright::probe {
namespace {

constexpr const char* bits = "opwright::bits";

std::vector<c10::IValue> elements(const c10::IValue& value, const std::string& what) {
    if (value.isList()) return value.toListRef().vec();
    if (value.isTuple()) return value.toTupleRef().elements().vec();
    throw Error(Code::input_unreadable, what + " of type " + value.tagKind() +
                                            "; expected a list with one tuple of arguments for each call, as in "
                                            "torch.save([(x, 2.0)], path)");
}

c10::IValue tuple(std::vector<c10::IValue> values) {
    return c10::ivalue::Tuple::create(std::move(values));
}

bool is_known_to_archives(at::ScalarType dtype) {
    switch (dtype) {
        case at::kByte:
        case at::kChar:
        case at::kShort:
        case at::kInt:
        case at::kLong:
        case at::kHalf:
        case at::kFloat:
        case at::kDouble:
        case at::kComplexFloat:
        case at::kComplexDouble:
        case at::kBool:
        case at::kBFloat16:
            return true;
        default:
            return false;
    }
}

at::ScalarType integer_of_size(size_t bytes) {
    return bytes == 1 ? at::kByte : bytes == 2 ? at::kShort : bytes == 4 ? at::kInt : at::kLong;
}

c10::IValue from_bits(const std::string& name, const at::Tensor& integers) {
    const at::ScalarType dtype = host::dtype_from_name(name);
    if (dtype != at::ScalarType::Undefined) return integers.view(dtype);
    throw std::runtime_error("the dtype " + name + " is unknown");
}

c10::IValue decoded(const c10::IValue& value) {
    if (!value.isTuple() && !value.isList()) return value;
    std::vector<c10::IValue> inner = value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
    if (inner.size() == 3 && inner[0].isString() && inner[0].toStringRef() == bits)
        return from_bits(inner[1].toStringRef(), inner[2].toTensor());
    for (c10::IValue& element : inner) element = decoded(element);
    return tuple(std::move(inner));
}

// Bytes, because a message need not be valid UTF-8, unlike a Python string.
at::Tensor bytes_of(const std::string& text) {
    at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
    std::memcpy(bytes.data_ptr(), text.data(), text.size());
    return bytes;
}

std::vector<char> pickled(const std::vector<Response>& responses) {
    // Tuples, because a list is saved with its element type, which torch.load(weights_only=True) rejects.
    std::vector<c10::IValue> entries;
    for (const Response& response : responses)
        entries.push_back(tuple({tuple(response.outputs), tuple(response.gradients), bytes_of(response.error)}));
    return host::archive_of(tuple(std::move(entries)));
}

}  // namespace

std::vector<Arguments> read_requests(const std::string& path) {
    c10::IValue all = host::read_archive("requests", path, Code::input_unreadable);
    try {
        all = decoded(all);
    } catch (const std::exception& error) {
        throw Error(Code::input_unreadable, "requests " + path + " cannot be read: " + host::reason(error));
    }
    std::vector<Arguments> requests;
    for (const c10::IValue& request : elements(all, "requests " + path + " are"))
        requests.push_back(elements(request, "requests " + path + " contain a call"));
    return requests;
}

void write_responses(const std::vector<Response>& responses, const std::string& path) {
    std::vector<char> bytes;
    try {
        bytes = pickled(responses);
    } catch (const std::exception& error) {
        throw Error(Code::output_unwritable, "responses " + path + " cannot be written: " + host::reason(error));
    }
    try {
        host::write_file_atomically(path, {bytes.data(), bytes.size()});
    } catch (const std::system_error&) {
        throw Error(Code::output_unwritable, "responses " + path + " cannot be written");
    }
}

std::vector<c10::IValue> flatten(const c10::IValue& value) {
    if (value.isTensor() && !value.toTensor().defined()) return {c10::IValue()};
    if (value.isTensor() || value.isNone() || value.isInt() || value.isDouble() || value.isBool() || value.isString())
        return {value};
    if (!value.isTuple() && !value.isList())
        throw std::runtime_error("the model returned a value of type " + value.tagKind() +
                                 ", which cannot be written: return tensors, numbers, strings, or tuples or lists of "
                                 "them");
    std::vector<c10::IValue> all;
    for (const c10::IValue& element : value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec()) {
        const std::vector<c10::IValue> found = flatten(element);
        all.insert(all.end(), found.begin(), found.end());
    }
    return all;
}

c10::IValue encoded(const c10::IValue& value) {
    if (!value.isTensor()) return value;
    // A lazily conjugated or negated tensor would be saved with a type that torch.load(weights_only=True) rejects.
    const at::Tensor tensor = value.toTensor().detach().resolve_conj().resolve_neg();
    if (tensor.layout() != at::kStrided || tensor.is_nested() || tensor.is_quantized() || tensor.is_meta())
        throw std::runtime_error("the model returned a tensor of type " + tensor.toString() +
                                 ", which cannot be written: return a strided tensor that has storage");
    if (is_known_to_archives(tensor.scalar_type())) return tensor;
    return tuple({bits, host::dtype_name(tensor.scalar_type()), tensor.view(integer_of_size(tensor.itemsize()))});
}

}  // namespace opwright::probe
