// The entry points of libFuzzer. The name under which the program is started selects the target.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace opwright::fuzz {
namespace {

constexpr size_t largest_input = size_t{1} << 17;
const Target* chosen = nullptr;

// libFuzzer treats a counter that was 0 until now as a new part of the program.
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t messages[1 << 12];

}  // namespace

std::string changed_bytes(std::string bytes, Random&) {
    const size_t size = bytes.size(), most = std::min(std::max<size_t>(2 * size, 64), largest_input);
    if (size > most) return bytes;
    bytes.resize(most);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, most));
    return bytes;
}

// Ignores what differs in every message: numbers, names and paths.
void note(std::string_view message) {
    if (chosen != &picture && chosen != &golden && chosen != &model && chosen != &package) return;
    constexpr std::string_view small = "abcdefghijklmnopqrstuvwxyz";
    std::istringstream words{std::string(message.substr(0, 200))};
    std::string letters;
    for (std::string word; words >> word;)
        if (word.size() < 12 && word.find_first_not_of(small) == std::string::npos) letters += word;
    messages[std::hash<std::string>()(letters) % sizeof messages] = 1;
}

}  // namespace opwright::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char*** words) {
    using namespace opwright::fuzz;
    const std::string name = std::filesystem::path(**words).filename().string();
    for (const Target* one : targets())
        if (one->name == name) chosen = one;
    if (!chosen) fail("this program must be started under the name of a target");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const opwright::fuzz::Scratch scratch;
    opwright::fuzz::chosen->read({reinterpret_cast<const char*>(data), size});
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
    using namespace opwright::fuzz;
    std::seed_seq once{seed};
    Random random(once);
    std::string input(reinterpret_cast<const char*>(data), size);
    for (size_t left = 1 + random.below(2) * random.below(3); left > 0; --left) input = chosen->changed(input, random);
    if (input.size() > most) input.resize(most);
    std::memcpy(data, input.data(), input.size());
    return input.size();
}
