// Stops threads that wait for a descriptor.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "engine/file.h"

namespace opwright::host {

class StopSignal {
  public:
    // Throws std::system_error.
    StopSignal() : event_(eventfd(0, EFD_CLOEXEC)) {
        if (!event_) throw last_error("eventfd");
    }

    // Returns whether the signal is given within `time`.
    bool is_given_within(std::chrono::milliseconds time) const {
        pollfd event{event_.number(), POLLIN, 0};
        return poll(&event, 1, static_cast<int>(time.count())) > 0;
    }

    void stop() const { eventfd_write(event_.number(), 1); }

    // Waits for `events` of `file`, or for its failure. Returns false if stopped instead.
    bool wait_for(int file, short events) const {
        std::array<pollfd, 2> both{pollfd{file, events, 0}, pollfd{event_.number(), POLLIN, 0}};
        while (true) {
            const int ready = poll(both.data(), both.size(), -1);
            if (ready > 0) return both[1].revents == 0;
            if (errno != EINTR) return true;  // reading and writing report why
        }
    }

  private:
    Descriptor event_;
};

}  // namespace opwright::host
