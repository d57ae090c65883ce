// Erases the C++ signature of an operator's kernels from the dispatcher.
//
// The dispatcher stores the C++ signature of an operator's first kernel for the lifetime of the operator's entry, and
// terminates the process if a static constructor registers a kernel with a different one. The entry of a replaced
// operator is kept, because handles refer to it, so its signature must be erased.
#include <ATen/core/dispatch/Dispatcher.h>

namespace {

// An explicit instantiation may access private members.
template <class Tag, auto member>
struct Access {
    friend auto member_of(Tag /*tag*/) { return member; }
};

struct Definition {
    friend auto member_of(Definition tag);
};
struct Signature {
    friend auto member_of(Signature tag);
};
struct SymbolicSignature {
    friend auto member_of(SymbolicSignature tag);
};
template struct Access<Definition, &c10::OperatorHandle::operatorDef_>;
template struct Access<Signature, &c10::impl::OperatorEntry::cpp_signature_>;
template struct Access<SymbolicSignature, &c10::impl::OperatorEntry::sym_cpp_signature_>;

}  // namespace

// All remaining kernels of the operator must be Python kernels.
extern "C" __attribute__((visibility("default"))) void opwright_forget_signature(const char* name,
                                                                                 const char* overload) {
    const auto op = c10::Dispatcher::singleton().findOp({name, overload});
    if (!op.has_value()) return;
    auto& entry = ((*op).*member_of(Definition()))->op;
    (entry.*member_of(Signature())).reset();
    (entry.*member_of(SymbolicSignature())).reset();
}
