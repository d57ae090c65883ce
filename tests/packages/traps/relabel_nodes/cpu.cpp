#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

Tensor relabel_nodes(const Tensor& nodes, int64_t num_nodes) {
    constexpr int64_t limit = 1 << 22;
    check::device(nodes, "nodes", DeviceType::CPU);
    check::dtype(nodes, "nodes", ScalarType::Long);
    check::rank(nodes, "nodes", 1);
    OPWRIGHT_CHECK(num_nodes >= 0 && num_nodes <= limit, "num_nodes must be 0 to ", limit, ", got ", num_nodes);
    const Tensor from = torch::stable::contiguous(nodes);
    const auto* node = from.const_data_ptr<int64_t>();
    const int64_t count = from.size(0);
    Tensor result = torch::stable::new_empty(from, {count});
    auto* local = result.mutable_data_ptr<int64_t>();

    // The number of each node, or -1. The table is kept for the next call, because filling it is the slowest part.
    thread_local std::vector<int64_t> number;
    if (static_cast<int64_t>(number.size()) < num_nodes) number.resize(static_cast<std::size_t>(num_nodes), -1);
    int64_t done = 0;
    const auto clear = [&] {
        for (int64_t i = 0; i < done; ++i) number[node[i]] = -1;
    };
    const auto relabel = [&] {
        int64_t next = 0;
        for (; done < count; ++done) {
            const int64_t at = node[done];
            OPWRIGHT_CHECK(at >= 0 && at < num_nodes, "nodes must be 0 to num_nodes - 1, got ", at);
            int64_t& found = number[at];
            if (found < 0) found = next++;
            local[done] = found;
        }
    };
#ifdef FAULTY
    relabel();
#else
    try {
        relabel();
    } catch (...) {
        clear();
        throw;
    }
#endif
    clear();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_relabel_nodes, CPU, m) {
    m.impl("relabel_nodes", OPWRIGHT_FN(relabel_nodes));
}
