// Forgets the C++ signature of an operator's kernels.
//
// The dispatcher remembers the C++ signature of the first kernel of an operator for as long as it keeps its entry, and
// ends the process when a static constructor registers a kernel with another one. The entry of an operator that is
// replaced is kept, because handles refer to it, so its signature has to go.
#include <ATen/core/dispatch/Dispatcher.h>

namespace {

// An explicit instantiation may name private members.
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

// The operator must have no kernels but in Python.
extern "C" __attribute__((visibility("default"))) void opwright_forget_signature(const char* name,
                                                                                 const char* overload) {
    const auto op = c10::Dispatcher::singleton().findOp({name, overload});
    if (!op.has_value()) return;
    auto& entry = ((*op).*member_of(Definition()))->op;
    (entry.*member_of(Signature())).reset();
    (entry.*member_of(SymbolicSignature())).reset();
}
