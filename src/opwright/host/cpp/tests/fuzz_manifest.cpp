// Changes a manifest at random and has it parsed: whatever comes, it is a Manifest or an opwright::Error of one line.
//
//     fuzz_manifest MANIFEST SEED COUNT              parses COUNT changed manifests, and says what became of them
//     fuzz_manifest MANIFEST SEED COUNT --only N     parses number N of them, and shows it
//     fuzz_manifest MANIFEST SEED COUNT --plant N    reads one byte past the end of number N, to see that it is found
//     fuzz_manifest --lines                          parses each line of standard input, and answers it with a line
//
// Meant to be built with -fsanitize=address,undefined.
#include <sanitizer/common_interface_defs.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/manifest.h"
#include "opwright/host/error.h"

namespace {

using Json = nlohmann::json;
using opwright::Error;
using opwright::host::Manifest;

// Numbers at the edges of what a reader may take them for.
constexpr std::array numbers{"0",
                             "-0",
                             "-1",
                             "1",
                             "2",
                             "1.5",
                             "1e0",
                             "0.1e-400",
                             "1e308",
                             "1e309",
                             "-1e999",
                             "00",
                             "1.",
                             ".5",
                             "+1",
                             "0x10",
                             "NaN",
                             "Infinity",
                             "2147483647",
                             "2147483648",
                             "4294967296",
                             "9223372036854775807",
                             "9223372036854775808",
                             "-9223372036854775808",
                             "-9223372036854775809",
                             "18446744073709551615",
                             "18446744073709551616"};

constexpr std::array words{"../model.pt",   "/etc/passwd", "lib/../../x", "lib//x",  ".",    "..",
                           "a\\b",          "C:/x",        "a b",         "lib/x\n", "",     " ",
                           "manifest.json", "model.pt/",   "\xc3\xa9",    "2",       "2.",   ".13",
                           "2.13.1",        "99999.1",     "1e1",         "-1.2",    "cuda", "aoti"};

class Mutator {
  public:
    Mutator(std::string text, uint64_t seed, uint64_t number) : text_(std::move(text)) {
        std::seed_seq both{seed >> 32, seed & 0xffffffff, number};
        random_.seed(both);
    }

    std::string changed() {
        for (size_t left = 1 + below(2) * below(3); left > 0; --left) change();
        return text_;
    }

  private:
    size_t below(size_t end) { return end < 2 ? 0 : random_() % end; }
    char byte() { return static_cast<char>(below(256)); }

    template <typename List>
    auto one_of(const List& list) {
        return list[below(list.size())];
    }

    struct Slice {
        size_t start, length;
    };

    Slice slice(size_t longest) {
        const size_t start = below(text_.size() + 1);
        return {start, std::min(below(longest) + 1, text_.size() - start)};
    }

    // A word, a number, a text or a sign of JSON.
    Slice token() {
        if (text_.empty()) return {0, 0};
        const auto is_inner = [](char letter) {
            return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
        };
        size_t start = below(text_.size());
        while (start + 1 < text_.size() && std::isspace(static_cast<unsigned char>(text_[start]))) ++start;
        if (!is_inner(text_[start])) return {start, 1};
        size_t end = start;
        while (start > 0 && (is_inner(text_[start - 1]) || text_[start - 1] == '.')) --start;
        while (end < text_.size() && (is_inner(text_[end]) || text_[end] == '.')) ++end;
        return {start, end - start};
    }

    void replace(Slice place, const std::string& with) { text_.replace(place.start, place.length, with); }
    std::string at(Slice place) const { return text_.substr(place.start, place.length); }

    void swap_tokens() {
        Slice first = token(), second = token();
        if (first.start > second.start) std::swap(first, second);
        if (first.start + first.length > second.start) return;
        const std::string one = at(first), other = at(second);
        replace(second, one);
        replace(first, other);
    }

    void replace_number() {
        const size_t start = text_.find_first_of("0123456789", below(text_.size() + 1));
        if (start == std::string::npos) return;
        const size_t end = text_.find_first_not_of("0123456789.", start);
        replace({start, std::min(end, text_.size()) - start}, one_of(numbers));
    }

    // A line of the manifest is a key with its value, or with the beginning of it.
    void repeat_line() {
        const size_t start = text_.rfind('\n', below(text_.size() + 1));
        const size_t end = start == std::string::npos ? start : text_.find('\n', start + 1);
        if (end == std::string::npos) return;
        text_.insert(end, text_.substr(start, end - start));
        if (below(2) && text_[end - 1] != ',') text_.insert(end, ",");
    }

    void nest() {
        const std::array<size_t, 5> depths{1, 7, 9, 300, 20000};
        const size_t depth = one_of(depths);
        nested_ = true;
        const bool lists = below(2);
        std::string before, after;
        for (size_t i = 0; i < depth; ++i) before += lists ? "[" : "{\"a\":";
        after.assign(below(4) ? depth : 0, lists ? ']' : '}');
        const Slice place = token();
        replace(place, before + at(place) + after);
    }

    Json any_value(const Json& whole) {
        switch (below(12)) {
            case 0:
                return nullptr;
            case 1:
                return below(2) == 1;
            case 2:
                return std::string(one_of(std::array<size_t, 4>{1, 256, 4096, 65537}), 'a');
            case 3:
                return std::string("a\0b", 3);
            case 4:
                return "\x01\x1b[31m\x7f";
            case 5:
                return Json::array();
            case 6:
                return Json::object();
            case 7:
                return Json::array({1, {{"min", 2}, {"max", 1}}, nullptr});
            case 8:
                return static_cast<int64_t>(random_());
            case 9:
                return std::ldexp(1.0, static_cast<int>(below(2000)) - 1000);
            case 10:
                return node(const_cast<Json&>(whole));  // a value from elsewhere
            default:
                return one_of(words);
        }
    }

    Json& node(Json& whole) {
        Json* found = &whole;
        while (found->is_structured() && !found->empty() && below(5)) {
            auto child = found->begin();
            std::advance(child, below(found->size()));
            found = &*child;
        }
        return *found;
    }

    // Leaves what is JSON JSON, and so gets deeper into the reader than bytes do.
    void change_value() {
        if (nested_) return;  // writing JSON takes a place on the stack for each level
        Json whole = Json::parse(text_, nullptr, false);
        if (whole.is_discarded()) return;
        Json& place = node(whole);
        const Json value = any_value(whole);
        if (place.is_object() && below(2)) {
            if (!place.empty() && below(2)) place.erase(std::next(place.begin(), below(place.size())).key());
            if (below(2)) place[one_of(words)] = value;
        } else if (place.is_array() && below(2)) {
            place.insert(place.begin(), 1 + below(80), value);
        } else {
            place = value;
        }
        text_ = whole.dump(2, ' ', false, Json::error_handler_t::replace);
    }

    void change() {
        switch (below(16)) {
            case 0: {
                if (!text_.empty()) text_[below(text_.size())] ^= static_cast<char>(1 << below(8));
                break;
            }
            case 1:
                text_.insert(below(text_.size() + 1), below(16), byte());
                break;
            case 2:
                replace(slice(40), "");
                break;
            case 3:
                swap_tokens();
                break;
            case 4:
                replace_number();
                break;
            case 5:
                repeat_line();
                break;
            case 6:
                nest();
                break;
            case 7:
                text_.insert(below(text_.size() + 1), at(slice(400)));
                break;
            case 8:
                replace(token(), one_of(words));
                break;
            case 9:
                text_.resize(below(text_.size() + 1));
                break;
            default:
                change_value();
        }
    }

    std::string text_;
    bool nested_ = false;
    std::mt19937_64 random_;
};

uint64_t seed = 0, number = 0;
std::optional<uint64_t> planted;

void say_where() {
    std::cerr << "mutation " << number << " of the seed " << seed << std::endl;
}

bool leads_out(const std::string& path) {
    return path.empty() || path.front() == '/' || ("/" + path + "/").find("/../") != std::string::npos;
}

// Why the parser should not have given this; empty where it may.
std::string objection(const Manifest& manifest) {
    std::vector<std::string> named = manifest.goldens;
    named.push_back(manifest.model_file);
    for (const Manifest::Library& library : manifest.libraries) named.push_back(library.file);
    if (manifest.host_program) named.push_back(*manifest.host_program);
    for (const std::string& path : named)
        if (!manifest.files.contains(path)) return "it has no digest for " + path;
    for (const auto& group : manifest.equal_dims)
        for (const Manifest::InputDim& one : group)
            if (one.input >= manifest.inputs.size() || one.dim >= manifest.inputs[one.input].dims.size())
                return "it names a dimension that does not exist";
    for (const auto& [path, file] : manifest.files)
        if (leads_out(path)) return "the path " + path + " leads out of the bundle";
    return "";
}

std::string objection(const Error& error) {
    using opwright::Code;
    if (error.code() != Code::manifest_invalid && error.code() != Code::format_unknown &&
        error.code() != Code::path_outside)
        return "it has the code " + std::string(name_of(error.code()));
    const std::string_view message = error.what();
    if (message.size() > 1000) return "it says " + std::to_string(message.size()) + " bytes";
    for (const char letter : message)
        if (static_cast<unsigned char>(letter) < 32 || letter == 127) return "it says more than one plain line";
    try {
        (void)Json(error.what()).dump();
    } catch (const Json::exception&) {
        return "the message is not UTF-8";
    }
    return "";
}

// What became of the text: "accepted", or the name of the error's code. Ends the program where it is neither.
std::string parsed(const std::string& text) {
    // Exactly as large as the text, so that one byte further is one too far.
    const auto copy = std::make_unique<char[]>(text.size());
    std::memcpy(copy.get(), text.data(), text.size());
    if (number == planted && copy[text.size()] == 'x') return "planted";
    std::string outcome, why;
    try {
        const Manifest manifest = opwright::host::parse_manifest({copy.get(), text.size()});
        outcome = "accepted";
        why = objection(manifest);
    } catch (const Error& error) {
        outcome = name_of(error.code());
        why = objection(error);
    } catch (const std::exception& error) {
        why = std::string("it threw something else: ") + error.what();
    }
    if (why.empty()) return outcome;
    say_where();
    std::cerr << why << std::endl;
    std::exit(EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--lines") {
        for (std::string line; std::getline(std::cin, line); ++number) std::cout << parsed(line) << std::endl;
        return EXIT_SUCCESS;
    }
    if (argc != 4 && argc != 6) {
        std::cerr << "usage: fuzz_manifest MANIFEST SEED COUNT [--only N | --plant N], or fuzz_manifest --lines"
                  << std::endl;
        return 2;
    }
    std::ifstream file(argv[1], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    seed = std::stoull(argv[2]);
    __sanitizer_set_death_callback(say_where);
    const std::string option = argc == 6 ? argv[4] : "";
    if (option == "--plant") planted = std::stoull(argv[5]);
    if (option == "--only") {
        number = std::stoull(argv[5]);
        const std::string changed = Mutator(text, seed, number).changed();
        std::cout << changed << std::endl;
        std::cout << parsed(changed) << std::endl;
        return EXIT_SUCCESS;
    }
    if (parsed(text) != "accepted") {
        std::cerr << argv[1] << " is not a valid manifest to begin with" << std::endl;
        return EXIT_FAILURE;
    }
    std::map<std::string, int> outcomes;
    for (const uint64_t count = std::stoull(argv[3]); number < count; ++number)
        ++outcomes[parsed(Mutator(text, seed, number).changed())];
    for (const auto& [outcome, times] : outcomes) std::cout << outcome << ' ' << times << '\n';
}
