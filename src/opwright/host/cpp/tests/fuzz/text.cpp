#include "tests/fuzz/text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 27> edge_numbers{"0",
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

struct Slice {
    size_t start = 0, length = 0;
};

class Editor {
  public:
    Editor(std::string text, Random& random) : text_(std::move(text)), random_(random) {}

    Slice slice(size_t longest) {
        const size_t start = random_.below(text_.size() + 1);
        return {start, std::min(random_.below(longest) + 1, text_.size() - start)};
    }

    // A word, a number or a sign.
    Slice token() {
        if (text_.empty()) return {};
        const auto is_inner = [](char letter) {
            return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
        };
        size_t start = random_.below(text_.size());
        while (start + 1 < text_.size() && std::isspace(static_cast<unsigned char>(text_[start]))) ++start;
        if (!is_inner(text_[start])) return {start, 1};
        size_t end = start;
        while (start > 0 && (is_inner(text_[start - 1]) || text_[start - 1] == '.')) --start;
        while (end < text_.size() && (is_inner(text_[end]) || text_[end] == '.')) ++end;
        return {start, end - start};
    }

    void replace(Slice place, std::string_view with) { text_.replace(place.start, place.length, with); }
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
        const size_t start = text_.find_first_of("0123456789", random_.below(text_.size() + 1));
        if (start == std::string::npos) return;
        const size_t end = text_.find_first_not_of("0123456789.", start);
        replace({start, std::min(end, text_.size()) - start}, edge_number(random_));
    }

    void repeat_line() {
        const size_t start = text_.rfind('\n', random_.below(text_.size() + 1));
        const size_t end = start == std::string::npos ? start : text_.find('\n', start + 1);
        if (end == std::string::npos) return;
        text_.insert(end, text_.substr(start, end - start));
        if (random_.one_in(2) && text_[end - 1] != ',') text_.insert(end, ",");
    }

    void nest() {
        constexpr std::array<size_t, 5> depths{1, 7, 9, 300, 20000};
        const size_t depth = random_.one_of(depths);
        const bool lists = random_.one_in(2);
        std::string before, after;
        for (size_t i = 0; i < depth; ++i) before += lists ? "[" : "{\"a\":";
        after.assign(random_.one_in(4) ? 0 : depth, lists ? ']' : '}');
        const Slice place = token();
        replace(place, before + at(place) + after);
    }

    void insert(std::string_view what) { text_.insert(random_.below(text_.size() + 1), what); }
    void cut() { text_.resize(random_.below(text_.size() + 1)); }
    std::string text() && { return std::move(text_); }

  private:
    std::string text_;
    Random& random_;
};

}  // namespace

std::string edge_number(Random& random) {
    return std::string(random.one_of(edge_numbers));
}

size_t nesting_of(std::string_view text) {
    size_t depth = 0, deepest = 0;
    for (const char letter : text) {
        if (std::string_view("([{").find(letter) != std::string_view::npos) deepest = std::max(deepest, ++depth);
        if (std::string_view(")]}").find(letter) != std::string_view::npos && depth > 0) --depth;
    }
    return deepest;
}

std::string changed_text(std::string text, std::span<const std::string_view> words, Random& random) {
    if (random.one_in(4)) return changed_bytes(std::move(text), random);
    Editor editor(std::move(text), random);
    switch (random.below(9)) {
        case 0:
            editor.replace(editor.slice(40), "");
            break;
        case 1:
            editor.swap_tokens();
            break;
        case 2:
            editor.replace_number();
            break;
        case 3:
            editor.repeat_line();
            break;
        case 4:
            if (random.one_in(4)) editor.nest();
            break;
        case 5:
            editor.insert(editor.at(editor.slice(400)));
            break;
        case 6:
            if (random.one_in(4)) editor.cut();
            break;
        case 7:
            editor.insert(random.one_of(words));
            break;
        default:
            editor.replace(editor.token(), random.one_of(words));
    }
    return std::move(editor).text();
}

}  // namespace opwright::fuzz
