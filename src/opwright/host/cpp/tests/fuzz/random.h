// Random choices, reproducible by seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace opwright::fuzz {

class Random {
  public:
    explicit Random(std::seed_seq& seed) : engine_(seed) {}

    uint64_t bits() { return engine_(); }
    size_t below(size_t end) { return end < 2 ? 0 : engine_() % end; }
    bool one_in(size_t times) { return below(times) == 0; }
    char byte() { return static_cast<char>(below(256)); }

    template <typename List>
    auto& one_of(List& list) {
        return list[below(list.size())];
    }

  private:
    std::mt19937_64 engine_;
};

// Mutations that ignore the meaning of the bytes: libFuzzer's own or, in a program without it, simple ones.
std::string changed_bytes(std::string bytes, Random& random);

}  // namespace opwright::fuzz
