#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

// The first of the ascending keys that is not below `wanted`.
template <class Key>
int64_t lower_bound(const int64_t* keys, int64_t count, Key wanted) {
    int64_t begin = 0, end = count;
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (static_cast<Key>(keys[middle]) < wanted) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

Tensor positions(const Tensor& ids, const Tensor& vocabulary, int64_t missing) {
    check::dtype(ids, "ids", ScalarType::Long);
    check::dtype(vocabulary, "vocabulary", ScalarType::Long);
    check::rank(vocabulary, "vocabulary", 1);
    const int64_t count = vocabulary.size(0);
    const Tensor dense = torch::stable::contiguous(ids), keys = torch::stable::contiguous(vocabulary);
    const int64_t* key = keys.const_data_ptr<int64_t>();
    for (int64_t i = 1; i < count; ++i) {
        OPWRIGHT_CHECK(key[i] > key[i - 1], "vocabulary must be strictly ascending, got ", key[i], " after ",
                       key[i - 1]);
    }
    Tensor result = torch::stable::new_empty(ids, ids.sizes());
    const int64_t* from = dense.const_data_ptr<int64_t>();
    int64_t* into = result.mutable_data_ptr<int64_t>();
#ifdef FAULTY
    using Key = double;
#else
    using Key = int64_t;
#endif
    for (int64_t i = 0; i < dense.numel(); ++i) {
        const Key wanted = static_cast<Key>(from[i]);
        const int64_t at = lower_bound(key, count, wanted);
        into[i] = at < count && static_cast<Key>(key[at]) == wanted ? at : missing;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_id_lookup, CPU, m) {
    m.impl("positions", OPWRIGHT_FN(positions));
}
