// A bounded queue of requests between two stages of a stream.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "opwright/host/error.h"

namespace opwright::host {

template <typename Item>
class StageQueue {
  public:
    // Waits until fewer than `most_requests` whole requests are queued. `is_last`: whether the item is the last of its
    // request. Returns whether the item was accepted.
    bool push(Item item, bool is_last = true) {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [this] { return whole_requests_ < most_requests || is_abandoned_; });
        if (is_abandoned_) return false;
        items_.emplace_back(std::move(item), is_last);
        if (is_last) ++whole_requests_;
        changed_.notify_all();
        return true;
    }

    // Closes the queue, because of `why` if it is an error.
    void close(std::optional<Error> why = std::nullopt) {
        const std::lock_guard lock(guard_);
        is_closed_ = true;
        error_ = std::move(why);
        changed_.notify_all();
    }

    // Waits for the next item; returns nullopt at the end.
    std::optional<Item> pop() {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [this] { return !items_.empty() || is_closed_ || is_abandoned_; });
        if (items_.empty()) return std::nullopt;
        auto [item, is_last] = std::move(items_.front());
        items_.pop_front();
        if (is_last) --whole_requests_;
        changed_.notify_all();
        return std::move(item);
    }

    // Rejects further items.
    void abandon() {
        const std::lock_guard lock(guard_);
        is_abandoned_ = true;
        changed_.notify_all();
    }

    // The error with which the queue was closed, if any.
    std::optional<Error> error() const {
        const std::lock_guard lock(guard_);
        return error_;
    }

  private:
    static constexpr size_t most_requests = 2;

    mutable std::mutex guard_;
    std::condition_variable changed_;
    std::deque<std::pair<Item, bool>> items_;
    size_t whole_requests_ = 0;
    bool is_closed_ = false, is_abandoned_ = false;
    std::optional<Error> error_;
};

}  // namespace opwright::host
