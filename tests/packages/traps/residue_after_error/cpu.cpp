#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

namespace {

using opwright::Tensor;

Tensor bucket_mean(const Tensor& values, const Tensor& bucket, int64_t buckets) {
    opwright::check::dtype(values, "values", opwright::ScalarType::Float);
    opwright::check::rank(values, "values", 1);
    opwright::check::dtype(bucket, "bucket", opwright::ScalarType::Long);
    const int64_t count = values.size(0);
    opwright::check::sizes(bucket, "bucket", {count});
    OPWRIGHT_CHECK(buckets >= 0 && buckets <= 1 << 16, "buckets must be from 0 to 65536, got ", buckets);
    const Tensor dense = torch::stable::contiguous(values);
    const Tensor dense_bucket = torch::stable::contiguous(bucket);
    Tensor result = torch::stable::new_empty(values, {buckets});
    const float* from = dense.const_data_ptr<float>();
    const int64_t* of = dense_bucket.const_data_ptr<int64_t>();
    float* to = result.mutable_data_ptr<float>();
    // Kept between calls, and zero between them.
    thread_local std::vector<double> sums;
    thread_local std::vector<int64_t> sizes;
#ifdef FAULTY
    if (sums.size() < static_cast<std::size_t>(buckets)) {
        sums.resize(buckets);
        sizes.resize(buckets);
    }
#else
    sums.assign(buckets, 0);
    sizes.assign(buckets, 0);
#endif
    for (int64_t i = 0; i < count; ++i) {
        OPWRIGHT_CHECK(of[i] >= 0 && of[i] < buckets, "bucket must be from 0 to ", buckets - 1, ", got ", of[i]);
        sums[of[i]] += from[i];
        ++sizes[of[i]];
    }
    for (int64_t b = 0; b < buckets; ++b) {
        to[b] = static_cast<float>(sums[b] / static_cast<double>(std::max<int64_t>(sizes[b], 1)));
        sums[b] = 0;
        sizes[b] = 0;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_residue_after_error, CPU, m) {
    m.impl("bucket_mean", OPWRIGHT_FN(bucket_mean));
}
