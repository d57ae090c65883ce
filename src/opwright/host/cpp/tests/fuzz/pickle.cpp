#include "tests/fuzz/pickle.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "tests/fuzz/text.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 22> pickle_words{"torch",
                                                        "FloatStorage",
                                                        "LongStorage",
                                                        "storage",
                                                        "cpu",
                                                        "cuda:0",
                                                        "0",
                                                        "-1",
                                                        "collections",
                                                        "OrderedDict",
                                                        "torch._utils",
                                                        "_rebuild_tensor_v2",
                                                        "_rebuild_qtensor",
                                                        "_rebuild_parameter",
                                                        "_rebuild_sparse_tensor",
                                                        "torch.jit._pickle",
                                                        "build_intlist",
                                                        "build_tensorlist",
                                                        "restore_type_tag",
                                                        "torch.device",
                                                        "__torch__",
                                                        "rel"};

// The operations that PyTorch writes or reads.
constexpr std::string_view operations = "()]}.NKMJGXcqhrjQtRabse0u\x85\x86\x87\x88\x89\x80\x8a";

// The size of an operation's argument: a fixed size, text after its length, or two lines.
size_t bytes_behind(std::string_view rest) {
    const auto length = [rest](int bytes) {
        size_t value = 0;
        for (int i = 0; i < bytes && i + 1U < rest.size(); ++i)
            value |= static_cast<size_t>(static_cast<unsigned char>(rest[i + 1U])) << 8 * i;
        return value;
    };
    switch (static_cast<unsigned char>(rest[0])) {
        case 'K':
        case 'q':
        case 'h':
        case 0x80:
            return 1;
        case 'M':
            return 2;
        case 'J':
        case 'r':
        case 'j':
            return 4;
        case 'G':
            return 8;
        case 0x8a:
            return 1 + length(1);
        case 'X':
        case 'T':
        case 'B':
            return 4 + length(4);
        case 'c': {
            const size_t first = rest.find('\n');
            const size_t second = first == std::string_view::npos ? first : rest.find('\n', first + 1);
            return second == std::string_view::npos ? rest.size() - 1 : second;
        }
        default:
            return 0;
    }
}

std::vector<std::string> operations_of(std::string_view pickle) {
    std::vector<std::string> found;
    while (!pickle.empty()) {
        const size_t size = std::min(bytes_behind(pickle), pickle.size() - 1) + 1;
        found.emplace_back(pickle.substr(0, size));
        pickle.remove_prefix(size);
    }
    return found;
}

std::string with_length(std::string text) {
    std::string whole = "X";
    for (int i = 0; i < 4; ++i) whole += static_cast<char>(text.size() >> 8 * i & 255);
    return whole + text;
}

std::string any_operation(Random& random) {
    std::string one(1, random.one_of(operations));
    if (one == "X") return with_length(std::string(random.one_of(pickle_words)));
    if (one == "c")
        return "c" + std::string(random.one_of(pickle_words)) + "\n" + std::string(random.one_of(pickle_words)) + "\n";
    if (one == "\x8a") return one + '\x08' + std::string(8, random.one_in(2) ? '\xff' : random.byte());
    for (size_t left = bytes_behind(one); left > 0; --left) one += random.one_in(3) ? random.byte() : '\0';
    return one;
}

void change_argument(std::string& one, Random& random) {
    if (one[0] == 'X' && one.size() >= 5) {
        one = with_length(changed_text(one.substr(5), pickle_words, random));
    } else if (one[0] == 'c' && one.size() > 2) {
        one = "c" + std::string(random.one_of(pickle_words)) + "\n" +
              (random.one_in(2) ? std::string(random.one_of(pickle_words)) + "\n" : one.substr(one.find('\n') + 1));
    } else if (one.size() > 1) {
        one[1 + random.below(one.size() - 1)] = random.one_in(2) ? random.byte() : '\xff';
    } else {
        one = any_operation(random);
    }
}

}  // namespace

std::string changed_pickle(std::string pickle, Random& random) {
    std::vector<std::string> all = operations_of(pickle);
    if (all.empty() || random.one_in(8)) return changed_bytes(std::move(pickle), random);
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(random.below(all.size()));
    switch (random.below(6)) {
        case 0:
            all.erase(place);
            break;
        case 1:
            all.insert(place, random.one_of(all));
            break;
        case 2:
            all.insert(place, any_operation(random));
            break;
        case 3:
            std::swap(*place, random.one_of(all));
            break;
        case 4:
            *place = random.one_of(all);
            break;
        default:
            change_argument(*place, random);
    }
    std::string changed;
    for (const std::string& one : all) changed += one;
    return changed;
}

}  // namespace opwright::fuzz
