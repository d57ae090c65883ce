#include "program/last_words.h"

#include <ATen/record_function.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "engine/activity.h"
#include "engine/alternate_stack.h"
#include "engine/libraries.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

struct Fault {
    int number;
    const char* name;
};

constexpr std::array faults{
    Fault{SIGSEGV, "SIGSEGV, an invalid memory access"},
    Fault{SIGBUS, "SIGBUS, an invalid memory access: a file may have been truncated"},
    Fault{SIGFPE, "SIGFPE, a division by zero"},
    Fault{SIGILL, "SIGILL, an instruction that this processor does not support"},
    Fault{SIGABRT, "SIGABRT, a call to abort"},
};

std::atomic<bool> expected = true;
pid_t own_process = 0;
int json_descriptor = -1;

// Text in preallocated memory: a signal handler must not allocate.
class Line {
  public:
    Line& operator<<(std::string_view text) {
        const size_t taken = std::min(text.size(), bytes_.size() - size_);
        std::copy_n(text.data(), taken, bytes_.data() + size_);
        size_ += taken;
        return *this;
    }
    Line& operator<<(int number) {
        std::array<char, 12> digits{};
        size_t place = digits.size();
        for (int rest = number; rest > 0 || place == digits.size(); rest /= 10)
            digits[--place] = static_cast<char>('0' + rest % 10);
        return *this << std::string_view(digits.data() + place, digits.size() - place);
    }
    // Appends text escaped for a JSON string.
    Line& quote(std::string_view text) {
        for (const char letter : text) {
            if (letter == '"' || letter == '\\') *this << "\\";
            const bool is_plain = static_cast<unsigned char>(letter) >= 32 && static_cast<unsigned char>(letter) < 127;
            *this << (is_plain ? std::string_view(&letter, 1) : "?");
        }
        return *this;
    }
    std::string_view text() const { return {bytes_.data(), size_}; }
    void write_to(int descriptor) const {
        for (size_t done = 0; done < size_;) {
            const ssize_t written = write(descriptor, bytes_.data() + done, size_ - done);
            if (written <= 0) return;
            done += static_cast<size_t>(written);
        }
    }

  private:
    std::array<char, 8192> bytes_;
    size_t size_ = 0;
};

void describe(Line& line, const Activity& activity) {
    const size_t depth = std::min(activity.depth.load(std::memory_order_acquire), Activity::deepest);
    if (depth > 0) line << "in the operator " << activity.operators[depth - 1] << ", ";
    line << "while it " << activity.verb << " " << activity.what.data();
}

// Describes what the process is doing, and returns the matching code.
Code describe_place(Line& line) {
    if (const char* library = library_being_opened()) {
        line << "while it opened the library " << library;
        return Code::library_refused;
    }
    if (own_activity) {
        describe(line, *own_activity);
        return Code::run_failed;
    }
    // A thread that PyTorch or an operator started.
    bool any = false;
    for (const std::atomic<Activity*>& place : activities) {
        const Activity* activity = place.load();
        if (!activity) continue;
        line << (any ? "; or " : "in a separate thread, ");
        describe(line, *activity);
        any = true;
    }
    if (!any) line << "outside the host's work";
    return any ? Code::run_failed : Code::internal;
}

Code announce(std::string_view what) {
    Line message;
    message << "the process was ended by " << what << ", ";
    const Code code = describe_place(message);
    show_standard_error();
    Line text;
    text << "host: " << message.text() << "\n";
    text.write_to(STDERR_FILENO);
    if (json_descriptor < 0) return code;
    Line json;
    json << "{";
    if (own_activity && own_activity->is_request_of_list)
        (json << R"("request":")").quote(own_activity->what.data()) << "\",";
    json << R"("error":{"code":)" << static_cast<int>(code) << R"(,"kind":")" << name_of(code) << R"(","message":")";
    json.quote(message.text()) << "\"}}\n";
    json.write_to(json_descriptor);
    return code;
}

void end_by(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

void on_fault(int number) {
    if (getpid() != own_process) return end_by(number);
    // If several threads crash at the same time, the first one reports, and the others wait until it ends the process.
    static std::atomic<pid_t> speaker = 0;
    const auto self = static_cast<pid_t>(syscall(SYS_gettid));
    pid_t other = 0;
    if (!speaker.compare_exchange_strong(other, self)) {
        if (other == self) return end_by(number);  // it crashed while reporting
        while (true) pause();
    }
    const auto* fault =
        std::find_if(faults.begin(), faults.end(), [number](const Fault& one) { return one.number == number; });
    announce(fault != faults.end() ? fault->name : "a signal");
    end_by(number);
}

[[noreturn]] void leave(int status) {
    syscall(SYS_exit_group, status);
    std::abort();
}

// A library may fork; its child may exit freely.
bool is_early() {
    return !expected.load() && getpid() == own_process;
}

void on_exit_called() {
    if (!is_early() || expected.exchange(true)) return;
    leave(static_cast<int>(announce("a call to exit")));
}

std::unique_ptr<at::ObserverContext> enter_operator(const at::RecordFunction& function) {
    if (own_activity) own_activity->enter(function.name());
    return nullptr;
}

void leave_operator(const at::RecordFunction&, at::ObserverContext*) {
    if (own_activity) own_activity->leave();
}

}  // namespace

void announce_early_end(int json) {
    own_process = getpid();
    json_descriptor = json;
    expected = false;
    std::atexit(on_exit_called);
    std::at_quick_exit(on_exit_called);
    at::addGlobalCallback(
        at::RecordFunctionCallback(enter_operator, leave_operator).scopes({at::RecordScope::FUNCTION}));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose reports contain more
    static const AlternateStack stack;
    for (const Fault& fault : faults) {
        struct sigaction action = {};
        action.sa_handler = on_fault;
        action.sa_flags = SA_ONSTACK | SA_NODEFER;
        sigaction(fault.number, &action, nullptr);
    }
#endif
}

void announce_early_end_first() {
    std::atexit(on_exit_called);
    std::at_quick_exit(on_exit_called);
}

void end_is_expected() {
    expected = true;
}

}  // namespace opwright::host

// Replaces the C library's `_exit`, which does not run any handlers. Calls from libraries resolve to this function;
// their exit status is kept if it is an error.
extern "C" __attribute__((visibility("default"))) void _exit(int status) {
    using namespace opwright::host;
    if (status == EXIT_SUCCESS && is_early()) status = static_cast<int>(announce("a call to _exit"));
    leave(status);
}

extern "C" __attribute__((visibility("default"))) void _Exit(int status) noexcept {
    _exit(status);
}
