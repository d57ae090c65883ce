#include "tests/fuzz/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/fuzz/text.h"

namespace opwright::fuzz {
namespace {

using Json = nlohmann::json;

Json& node(Json& whole, Random& random) {
    Json* found = &whole;
    while (found->is_structured() && !found->empty() && !random.one_in(5)) {
        auto child = found->begin();
        std::advance(child, random.below(found->size()));
        found = &*child;
    }
    return *found;
}

Json any_value(Json& whole, std::span<const std::string_view> words, Random& random) {
    constexpr std::array<size_t, 4> lengths{1, 256, 4096, 65537};
    switch (random.below(12)) {
        case 0:
            return nullptr;
        case 1:
            return random.one_in(2);
        case 2:
            return std::string(random.one_of(lengths), 'a');
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
            return static_cast<int64_t>(random.bits());
        case 9:
            return std::ldexp(1.0, static_cast<int>(random.below(2000)) - 1000);
        case 10:
            return node(whole, random);  // a value from elsewhere in the text
        default:
            return random.one_of(words);
    }
}

}  // namespace

std::string changed_json(std::string text, std::span<const std::string_view> words, Random& random) {
    constexpr size_t deepest = 200;  // writing JSON uses the stack for each level
    if (random.one_in(2) || nesting_of(text) > deepest) return changed_text(std::move(text), words, random);
    Json whole = Json::parse(text, nullptr, false);
    if (whole.is_discarded()) return changed_text(std::move(text), words, random);
    Json& place = node(whole, random);
    const Json value = any_value(whole, words, random);
    if (place.is_object() && random.one_in(2)) {
        if (!place.empty() && random.one_in(2)) {
            auto one = place.begin();
            std::advance(one, random.below(place.size()));
            place.erase(one);
        }
        if (random.one_in(2)) place[std::string(random.one_of(words))] = value;
    } else if (place.is_array() && random.one_in(2)) {
        place.insert(place.begin(), 1 + random.below(80), value);
    } else if (place.is_string() && random.one_in(2)) {
        place = changed_text(place.get<std::string>(), words, random);
    } else if (place.is_number() && random.one_in(2)) {
        place = Json::parse(edge_number(random), nullptr, false);
        if (place.is_discarded()) place = value;
    } else {
        place = value;
    }
    return whole.dump(random.one_in(4) ? -1 : 1, ' ', random.one_in(2), Json::error_handler_t::replace);
}

std::string changed_json_lines(std::string text, std::span<const std::string_view> words, Random& random) {
    if (random.one_in(4)) return changed_json(std::move(text), words, random);
    const size_t place = random.below(text.size() + 1);
    const size_t start = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
    const size_t end = std::min(text.find('\n', place), text.size());
    std::string line = changed_json(text.substr(start, end - start), words, random);
    if (random.one_in(4)) line += "\n" + line;
    return text.replace(start, end - start, line);
}

}  // namespace opwright::fuzz
