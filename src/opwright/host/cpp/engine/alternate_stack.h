// A stack for signal handlers, in a thread whose own stack may be exhausted.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <new>

namespace opwright::host {

// Applies to the thread that creates it, for the lifetime of this object. Does nothing if memory is short.
class AlternateStack {
  public:
    AlternateStack() : memory_(new (std::nothrow) char[bytes]) {
        if (!memory_) return;
        stack_t stack = {};
        stack.ss_sp = memory_.get();
        stack.ss_size = bytes;
        sigaltstack(&stack, nullptr);
    }
    ~AlternateStack() {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        if (memory_) sigaltstack(&none, nullptr);
    }
    AlternateStack(const AlternateStack&) = delete;
    AlternateStack& operator=(const AlternateStack&) = delete;

  private:
    // The registers of AVX-512 and AMX alone take 12 KiB.
    static constexpr size_t bytes = size_t{1} << 16;
    std::unique_ptr<char[]> memory_;
};

}  // namespace opwright::host
