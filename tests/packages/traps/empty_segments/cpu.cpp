#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor last_event(const Tensor& values, const Tensor& user, int64_t users) {
    opwright::check::dtype(values, "values", opwright::ScalarType::Float);
    opwright::check::rank(values, "values", 1);
    opwright::check::dtype(user, "user", opwright::ScalarType::Long);
    const int64_t events = values.size(0);
    opwright::check::sizes(user, "user", {events});
    OPWRIGHT_CHECK(users >= 0 && users <= 1 << 20, "users must be from 0 to 2^20, got ", users);
    const Tensor dense = torch::stable::contiguous(values);
    const Tensor dense_user = torch::stable::contiguous(user);
    const float* from = dense.const_data_ptr<float>();
    const int64_t* of = dense_user.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < events; ++i) {
        OPWRIGHT_CHECK(of[i] >= 0 && of[i] < users, "user must be from 0 to ", users - 1, ", got ", of[i], " at ", i);
    }
#ifdef FAULTY
    Tensor result = torch::stable::new_empty(values, {users});
#else
    Tensor result = torch::stable::new_zeros(values, {users});
#endif
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < events; ++i) to[of[i]] = from[i];
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_empty_segments, CPU, m) {
    m.impl("last_event", OPWRIGHT_FN(last_event));
}
