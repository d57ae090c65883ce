// Records what each thread is doing where a signal handler can read it, without allocation or locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

namespace opwright::host {

// A thread's current task, and the operators that it is executing, innermost last.
struct Activity {
    static constexpr size_t name_bytes = 512, deepest = 16;

    const char* verb = "";                // such as "computed"
    std::array<char, name_bytes> what{};  // such as the name of a request
    bool is_request_of_list = false;
    std::array<const char*, deepest> operators{};
    std::atomic<size_t> depth = 0;  // may be larger than `deepest`

    void enter(const char* name) {
        const size_t place = depth.load(std::memory_order_relaxed);
        if (place < deepest) operators[place] = name;
        depth.store(place + 1, std::memory_order_release);
    }
    void leave() {
        const size_t place = depth.load(std::memory_order_relaxed);
        if (place > 0) depth.store(place - 1, std::memory_order_release);
    }
};

// This thread's activity; null if unknown.
inline thread_local constinit Activity* own_activity = nullptr;

// The activities of all threads, up to the array's size.
inline std::array<std::atomic<Activity*>, 64> activities{};

// During its lifetime, this thread's task is `what`. `verb` must outlive it.
class ActivityScope {
  public:
    ActivityScope(const char* verb, std::string_view what, bool is_request_of_list = false) {
        activity_.verb = verb;
        what.copy(activity_.what.data(), Activity::name_bytes - 1);
        activity_.is_request_of_list = is_request_of_list;
        for (std::atomic<Activity*>& place : activities) {
            Activity* free = nullptr;
            if (!place.compare_exchange_strong(free, &activity_)) continue;
            place_ = &place;
            break;
        }
        own_activity = &activity_;
    }
    ~ActivityScope() {
        own_activity = nullptr;
        if (place_) place_->store(nullptr);
    }
    ActivityScope(const ActivityScope&) = delete;
    ActivityScope& operator=(const ActivityScope&) = delete;

  private:
    Activity activity_;
    std::atomic<Activity*>* place_ = nullptr;
};

}  // namespace opwright::host
