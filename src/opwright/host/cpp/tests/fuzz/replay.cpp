// Runs the host on inputs of every kind, without libFuzzer.
//
//     replay CORPUS                                reads each file in each target's folder, and counts the outcomes
//     replay CORPUS --mutate TARGET SEED COUNT     reads COUNT mutated inputs of the target, and counts the outcomes
//     ... --only N                                 reads number N of them, and prints it
//     ... --plant N                                reads one byte past the end of number N, to test the detection
//     replay --lines TARGET                        reads each line of standard input, and prints its outcome
//
// Build it with -fsanitize=address,undefined.
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/file.h"
#include "program/streams.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace opwright::fuzz {

std::string changed_bytes(std::string bytes, Random& random) {
    const size_t place = random.below(bytes.size() + 1);
    switch (random.below(5)) {
        case 0:
            bytes.insert(place, random.below(16), random.byte());
            break;
        case 1:
            bytes.erase(place, random.below(40));
            break;
        case 2:
            bytes.insert(random.below(bytes.size() + 1), bytes.substr(place, random.below(100)));
            break;
        case 3:
            for (size_t i = place; i < std::min(place + 4, bytes.size()); ++i) bytes[i] = '\xff';
            break;
        default:
            if (place < bytes.size()) bytes[place] ^= static_cast<char>(1 << random.below(8));
    }
    return bytes;
}

void note(std::string_view) {}

namespace {

std::string place_in_run;
std::optional<uint64_t> planted;

void say_where() {
    std::cerr << place_in_run << std::endl;
}

std::string read_by(const Target& target, const std::string& input, std::optional<uint64_t> number = std::nullopt) {
    // Exactly as large as the input, so that reading one more byte is an error.
    const auto copy = std::make_unique<char[]>(input.size());
    std::memcpy(copy.get(), input.data(), input.size());
    if (number && number == planted && copy[input.size()] == 'x') return "planted";
    return target.read({copy.get(), input.size()});
}

const Target& target_named(std::string_view name) {
    for (const Target* one : targets())
        if (one->name == name) return *one;
    fail("unknown target " + std::string(name));
}

std::vector<std::pair<std::string, std::string>> inputs_in(const std::filesystem::path& folder) {
    std::vector<std::pair<std::string, std::string>> inputs;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        inputs.emplace_back(file.path().string(), host::read_all(host::open_to_read(file.path().string()).number()));
    std::sort(inputs.begin(), inputs.end());
    require(!inputs.empty(), folder.string() + " contains no inputs");
    return inputs;
}

std::string mutated(const Target& target, const std::vector<std::pair<std::string, std::string>>& inputs, uint64_t seed,
                    uint64_t number) {
    place_in_run = "mutation " + std::to_string(number) + " of the seed " + std::to_string(seed);
    std::seed_seq both{seed >> 32, seed & 0xffffffff, number};
    Random random(both);
    std::string input = random.one_of(inputs).second;
    for (size_t left = 1 + random.below(2) * random.below(3); left > 0; --left) input = target.changed(input, random);
    return input;
}

// The host's own output goes to standard error.
std::ostream& answers() {
    static host::DescriptorStream out(host::take_standard_output());
    return out;
}

void print(const Target& target, const std::map<std::string, int>& outcomes) {
    for (const auto& [outcome, times] : outcomes)
        answers() << target.name << ' ' << outcome << ' ' << times << std::endl;
}

int mutate(const std::filesystem::path& corpus, const std::vector<std::string>& words) {
    const Target& target = target_named(words[0]);
    const auto inputs = inputs_in(corpus / target.name);
    const uint64_t seed = std::stoull(words[1]), count = std::stoull(words[2]);
    const std::string option = words.size() == 5 ? words[3] : "";
    if (option == "--plant") planted = std::stoull(words[4]);
    if (option == "--only") {
        const uint64_t number = std::stoull(words[4]);
        const std::string input = mutated(target, inputs, seed, number);
        answers() << input << std::endl << read_by(target, input, number) << std::endl;
        return EXIT_SUCCESS;
    }
    std::map<std::string, int> outcomes;
    for (uint64_t number = 0; number < count; ++number)
        ++outcomes[read_by(target, mutated(target, inputs, seed, number), number)];
    print(target, outcomes);
    return EXIT_SUCCESS;
}

int replay(const std::filesystem::path& corpus) {
    for (const Target* target : targets()) {
        std::map<std::string, int> outcomes;
        for (const auto& [path, input] : inputs_in(corpus / target->name)) {
            place_in_run = path;
            ++outcomes[read_by(*target, input)];
        }
        print(*target, outcomes);
    }
    return EXIT_SUCCESS;
}

int answer_lines(const Target& target) {
    size_t number = 0;
    for (std::string line; std::getline(std::cin, line);) {
        place_in_run = "line " + std::to_string(++number);
        answers() << read_by(target, line) << std::endl;
    }
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace opwright::fuzz

int main(int argc, char** argv) {
    using namespace opwright::fuzz;
    const std::vector<std::string> words(argv + 1, argv + argc);
    answers();
    __sanitizer_set_death_callback(say_where);
    std::signal(SIGABRT, [](int) { say_where(); });
    if (words.size() == 2 && words[0] == "--lines") return answer_lines(target_named(words[1]));
    if (words.empty() || (words.size() > 1 && (words.size() < 5 || words[1] != "--mutate"))) {
        std::cerr << "usage: replay CORPUS [--mutate TARGET SEED COUNT [--only N | --plant N]], or replay --lines "
                     "TARGET"
                  << std::endl;
        return 2;
    }
    const std::filesystem::path corpus = std::filesystem::absolute(words[0]);
    const Scratch scratch;
    return words.size() == 1 ? replay(corpus) : mutate(corpus, {words.begin() + 2, words.end()});
}
